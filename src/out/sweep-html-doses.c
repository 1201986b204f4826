/* SPDX-License-Identifier: MIT */
/*
 * The page's picture of one target: the time that an item took longer against what was injected
 * into it, with the fit, and the same as a table. Both axes begin at zero and are those of all
 * targets.
 */
#include <math.h>
#include "page.h"
#include "sweep-gain.h"
#include "sweep-html.h"

enum { WIDTH = 320, HEIGHT = 300, LEFT = 62, TOP = 12, SIDE = 240, MARKS = 4 };

/* Below zero lie points of noise: at most this part of the picture. */
#define BELOW_ROOM 0.15

static bool has_point(const struct sweep_dose *d)
{
	return d->delay_ns && isfinite(d->x_ns) && isfinite(d->delta_ns.est);
}

bool sweep_page_has_doses(const struct sweep_target *t)
{
	for (size_t i = 0; i < t->n_doses; i++)
		if (has_point(&t->dose[i]))
			return true;
	return false;
}

/* Wide enough for all doses, and as high as wide, or as what is proven: the rest may lie anywhere.
 */
void sweep_page_scale(struct sweep_page *p)
{
	double most = 0, least = 0;

	p->x_most = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct sweep_target *t = &p->res->target[i];

		for (size_t d = 0; d < t->n_doses; d++) {
			const struct sweep_estimate *e = &t->dose[d].delta_ns;

			if (!has_point(&t->dose[d]))
				continue;
			p->x_most = fmax(p->x_most, t->dose[d].x_ns);
			if (out_sweep_proven(t))
				most = fmax(most, isfinite(e->hi) ? e->hi : e->est);
			least = fmin(least, isfinite(e->lo) ? e->lo : e->est);
		}
	}
	p->x_most = p->x_most > 0 ? p->x_most * 1.05 : 1;
	p->y_most = fmax(p->x_most, 1.05 * most);
	p->y_least = fmax(least, -BELOW_ROOM * p->y_most);
}

static double at_x(const struct sweep_page *p, double ns)
{
	return LEFT + SIDE * ns / p->x_most;
}

static double at_y(const struct sweep_page *p, double ns)
{
	return TOP + SIDE * (p->y_most - ns) / (p->y_most - p->y_least);
}

static void axes(const struct sweep_page *p)
{
	double zero = at_y(p, 0), step = page_step(p->x_most, MARKS);
	FILE *f = p->f;
	char text[32];

	for (double v = 0; v <= p->x_most; v += step)
		fprintf(f,
			"<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"></line>"
			"<text class=\"tick\" x=\"%.1f\" y=\"%d\" "
			"text-anchor=\"middle\">%s</text>\n",
			at_x(p, v), at_x(p, v), TOP, TOP + SIDE, at_x(p, v), TOP + SIDE + 16,
			page_tick(v, text, sizeof(text)));
	step = page_step(p->y_most, MARKS);
	for (double v = 0; v <= p->y_most; v += step)
		fprintf(f,
			"<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"></line>"
			"<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, LEFT + SIDE, at_y(p, v), at_y(p, v), LEFT - 6, at_y(p, v) + 4,
			page_tick(v, text, sizeof(text)));
	fprintf(f,
		"<path class=\"axis\" d=\"M%d %dV%dM%d %.1fH%d\"></path>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">injected, per %s</text>\n"
		"<text transform=\"translate(12 %d) rotate(-90)\" text-anchor=\"middle\">"
		"longer by, per %s</text>\n",
		LEFT, TOP, TOP + SIDE, LEFT, zero, LEFT + SIDE, LEFT + SIDE / 2, TOP + SIDE + 36,
		p->unit, TOP + SIDE / 2, p->unit);
}

/* From (x0, y0) with a slope, as far as the picture goes. */
static void line(const struct sweep_page *p, const char *css, double x0, double slope)
{
	double x1 = p->x_most, y1 = slope * (x1 - x0);

	if (y1 > p->y_most || y1 < p->y_least) {
		y1 = y1 > 0 ? p->y_most : p->y_least;
		x1 = x0 + y1 / slope;
	}
	if (!isfinite(x1) || x0 > p->x_most)
		return;
	fprintf(p->f, "<path class=\"%s\" d=\"M%.1f %.1fH%.1fL%.1f %.1f\"></path>\n", css,
		at_x(p, 0), at_y(p, 0), at_x(p, x0), at_x(p, x1), at_y(p, y1));
}

/* Between the slopes of the interval; what lies outside the picture is clipped. */
static void wedge(const struct sweep_page *p, const char *css, double x0,
		  struct sweep_estimate slope, size_t id)
{
	double x = p->x_most;

	if (!isfinite(slope.lo) || !isfinite(slope.hi) || !(x0 < x))
		return;
	fprintf(p->f,
		"<path class=\"wedge%s\" clip-path=\"url(#clip%zu)\" d=\"M%.1f %.1fL%.1f "
		"%.1fV%.1fz\">"
		"</path>\n",
		css, id, at_x(p, x0), at_y(p, 0), at_x(p, x), at_y(p, slope.lo * (x - x0)),
		at_y(p, slope.hi * (x - x0)));
}

/* Where the slack ends: its interval lies on the axis. */
static void slack(const struct sweep_page *p, const struct sweep_target *t)
{
	double lo = t->slack_ns.lo, hi = t->slack_ns.hi;

	if (isfinite(t->slack_ns.est) && t->slack_ns.est <= p->x_most)
		fprintf(p->f,
			"<line class=\"hinge\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\">"
			"</line>\n",
			at_x(p, t->slack_ns.est), at_x(p, t->slack_ns.est), TOP, TOP + SIDE);
	if (isfinite(lo) && isfinite(hi) && lo < p->x_most)
		fprintf(p->f,
			"<line class=\"slack\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\">"
			"</line>\n",
			at_x(p, fmax(lo, 0)), at_x(p, fmin(hi, p->x_most)), at_y(p, 0), at_y(p, 0));
}

/* Invalid figures have no meaning, and so no line. */
static void fit(const struct sweep_page *p, const struct sweep_target *t, size_t id)
{
	const char *css = out_sweep_proven(t) ? "fit" : "fit unproven";
	const char *how = out_sweep_proven(t) ? "" : " unproven";

	line(p, "whole", 0, 1);
	if (t->verdict == VERDICT_INVALID)
		return;
	if (t->verdict == VERDICT_SLACK) {
		slack(p, t);
		if (t->slack_kind == SLACK_FOUND) {
			wedge(p, how, t->slack_ns.est, t->kappa_beyond, id);
			line(p, css, t->slack_ns.est, t->kappa_beyond.est);
		}
	} else if (isfinite(t->kappa.est)) {
		wedge(p, how, 0, t->kappa, id);
		line(p, css, 0, t->kappa.est);
	}
}

static void arrow(const struct sweep_page *p, double x, bool up)
{
	int y = up ? TOP : TOP + SIDE, by = up ? 8 : -8;

	fprintf(p->f, "<path class=\"arrow\" d=\"M%.1f %dl-4 %dh8z\"></path>\n", x, y, by);
}

static double inside(const struct sweep_page *p, double ns)
{
	return fmin(fmax(ns, p->y_least), p->y_most);
}

static void point(const struct sweep_page *p, const struct sweep_dose *d)
{
	double x = at_x(p, d->x_ns), lo = d->delta_ns.lo, hi = d->delta_ns.hi, y = d->delta_ns.est;

	if (!isnan(lo) && !isnan(hi))
		fprintf(p->f, "<path class=\"ci\" d=\"M%.1f %.1fV%.1f\"></path>\n", x,
			at_y(p, inside(p, lo)), at_y(p, inside(p, hi)));
	if (fmax(y, isnan(hi) ? y : hi) > p->y_most)
		arrow(p, x, true);
	if (fmin(y, isnan(lo) ? y : lo) < p->y_least)
		arrow(p, x, false);
	if (y <= p->y_most && y >= p->y_least)
		fprintf(p->f, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"></circle>\n",
			isnan(lo) || isnan(hi) ? "point alone" : "point", x, at_y(p, y));
}

void sweep_page_picture(const struct sweep_page *p, const struct sweep_target *t, size_t id)
{
	FILE *f = p->f;

	fprintf(f,
		"<svg class=\"dose\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
		"aria-labelledby=\"t%zu d%zu\" data-scale=\"0 %.6g %.6g %.6g\">\n<title "
		"id=\"t%zu\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT, id, id, p->x_most, p->y_least, p->y_most, id);
	page_text(f, t->spec);
	fprintf(f,
		"</title>\n<desc id=\"d%zu\">How much longer each %s took against the time that "
		"was injected into it: %s. The figures are in the table beside it.</desc>\n"
		"<clipPath id=\"clip%zu\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">"
		"</rect></clipPath>\n",
		id, p->unit, sweep_page_meaning(p, t), id, LEFT, TOP, SIDE, SIDE);
	axes(p);
	fit(p, t, id);
	for (size_t i = 0; i < t->n_doses; i++)
		if (has_point(&t->dose[i]))
			point(p, &t->dose[i]);
	fputs("</svg>\n", f);
}

void sweep_page_doses(const struct sweep_page *p, const struct sweep_target *t)
{
	FILE *f = p->f;

	fprintf(f,
		"<table><caption>Doses</caption><thead><tr><th scope=\"col\">of a call</th>"
		"<th scope=\"col\">injected, per %s</th><th scope=\"col\">longer by, per %s</th>"
		"</tr></thead>\n<tbody>\n",
		p->unit, p->unit);
	for (size_t i = 0; i < t->n_doses; i++) {
		const struct sweep_dose *d = &t->dose[i];

		if (!d->delay_ns)
			continue;
		fputs("<tr><th scope=\"row\">", f);
		page_figure(f, PAGE_TIME, (double)d->delay_ns);
		fputs("</th><td>", f);
		page_figure(f, PAGE_TIME, d->x_ns);
		fputs("</td><td>", f);
		page_figure(f, PAGE_TIME_CHANGE, d->delta_ns.est);
		fputs(" ", f);
		page_interval(f, PAGE_TIME_CHANGE, d->delta_ns);
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody></table>\n", f);
}

static void sample(FILE *f, const char *svg, const char *means)
{
	fprintf(f,
		"<li><svg class=\"dose\" width=\"30\" height=\"14\" aria-hidden=\"true\">%s</svg> "
		"%s</li>\n",
		svg, means);
}

void sweep_page_legend(const struct sweep_page *p)
{
	fputs("<ul class=\"legend\">\n", p->f);
	sample(p->f,
	       "<path class=\"ci\" d=\"M15 0V14\"></path><circle class=\"point\" cx=\"15\" "
	       "cy=\"7\" r=\"4\"></circle>",
	       "a dose, with its interval");
	sample(p->f, "<path class=\"fit\" d=\"M0 10L30 4\"></path>", "the fit: its slope is kappa");
	sample(p->f, "<path class=\"fit unproven\" d=\"M0 10L30 4\"></path>",
	       "a fit that proves nothing");
	sample(p->f, "<path class=\"wedge\" d=\"M0 12L30 0V10z\"></path>", "its interval");
	sample(p->f, "<path class=\"whole\" d=\"M0 14L30 0\"></path>",
	       "where all of a delay is felt");
	sample(p->f,
	       "<line class=\"slack\" x1=\"2\" x2=\"28\" y1=\"7\" y2=\"7\"></line>"
	       "<line class=\"hinge\" x1=\"15\" x2=\"15\" y1=\"0\" y2=\"14\"></line>",
	       "where a slack ends, with its interval");
	sample(p->f, "<path class=\"arrow\" d=\"M15 2l-4 8h8z\"></path>",
	       "goes on beyond the picture");
	fputs("</ul>\n", p->f);
}
