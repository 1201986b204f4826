/* SPDX-License-Identifier: MIT */
/* The page's picture of the sweep itself: the time per item of every window, as they followed. */
#include <math.h>
#include <stdlib.h>
#include "page.h"
#include "src/base/must.h"
#include "sweep-html.h"

enum { HEIGHT = 200, TOP = 8, DEEP = 160, MARKS = 4 };

/* Room for so many times the median: a window that was stalled would press all others flat. */
#define ROOM 2.5

static const struct {
	const char *css, *means;
} arms[ARM_COUNT] = {
	[ARM_OFF] = { "off", "hooks off" },
	[ARM_SHAM] = { "sham", "hooked, no delay" },
	[ARM_DOSE] = { "delayed", "with a delay" },
};

struct course {
	const struct sweep_page *p;
	double t_most, s_most;
};

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Returns how many windows can be shown. */
static size_t scale(struct course *c)
{
	const struct sweep_result *res = c->p->res;
	double *t = must_calloc(res->n_windows, sizeof(*t));
	size_t n = 0;

	for (size_t i = 0; i < res->n_windows; i++) {
		if (!isfinite(res->window[i].t_ns))
			continue;
		t[n++] = res->window[i].t_ns;
		c->s_most = fmax(c->s_most, (double)res->window[i].end_ns / 1e9);
	}
	qsort(t, n, sizeof(*t), by_size);
	if (n)
		c->t_most = fmin(t[n - 1] * 1.05, t[n / 2] * ROOM);
	free(t);
	return c->t_most > 0 && c->s_most > 0 ? n : 0;
}

static double at_y(const struct course *c, double ns)
{
	return TOP + DEEP * (1 - ns / c->t_most);
}

/* One path an arm: a dot is a line of no length with round ends. The width is 1000. */
static void dots(const struct course *c, enum sweep_arm arm)
{
	const struct sweep_result *res = c->p->res;
	FILE *f = c->p->f;
	bool any = false;

	for (size_t i = 0; i < res->n_windows; i++) {
		const struct sweep_window *w = &res->window[i];

		if (w->arm != arm || !isfinite(w->t_ns))
			continue;
		fprintf(f, "%sM%.1f %.1fh0", any ? "" : "<path d=\"",
			(double)w->end_ns / 1e9 / c->s_most * 1000,
			at_y(c, fmin(w->t_ns, c->t_most)));
		any = true;
	}
	if (any)
		fprintf(f, "\" class=\"%s\"></path>\n", arms[arm].css);
}

static void axes(const struct course *c)
{
	double step = page_step(c->t_most, MARKS);
	FILE *f = c->p->f;
	char text[32];

	for (double v = 0; v <= c->t_most; v += step)
		fprintf(f,
			"<line class=\"%s\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"></line>"
			"<text class=\"tick\" x=\"2\" y=\"%.1f\">%s</text>\n",
			v > 0 ? "grid" : "axis", at_y(c, v), at_y(c, v), at_y(c, v) - 3,
			page_tick(v, text, sizeof(text)));
	step = page_step(c->s_most, MARKS);
	for (double v = step; v <= c->s_most; v += step)
		fprintf(f,
			"<text class=\"tick\" x=\"%.2f%%\" y=\"%d\" text-anchor=\"end\">%.6g "
			"s</text>\n",
			100 * v / c->s_most, TOP + DEEP + 16, v);
}

void sweep_page_course(const struct sweep_page *p)
{
	struct course c = { .p = p };

	if (scale(&c) < 2)
		return;
	fprintf(p->f,
		"<figure class=\"course\"><figcaption>The time per %s in every window of the "
		"sweep. A dot at the upper edge lies there or above.</figcaption>\n"
		"<svg width=\"100%%\" height=\"%d\" role=\"img\" aria-labelledby=\"ct cd\">\n"
		"<title id=\"ct\">The course of the sweep</title>\n<desc id=\"cd\">Time per %s of "
		"each window, in the order in which they were measured; each is in the JSON "
		"document.</desc>\n",
		p->unit, HEIGHT, p->unit);
	axes(&c);
	fprintf(p->f,
		"<svg class=\"dots\" x=\"0\" y=\"0\" width=\"100%%\" height=\"%d\" "
		"viewBox=\"0 0 1000 %d\" preserveAspectRatio=\"none\">\n",
		HEIGHT, HEIGHT);
	for (int arm = 0; arm < ARM_COUNT; arm++)
		dots(&c, (enum sweep_arm)arm);
	fputs("</svg></svg>\n<ul class=\"legend\">", p->f);
	for (int arm = 0; arm < ARM_COUNT; arm++)
		fprintf(p->f,
			"<li><svg class=\"dots\" width=\"14\" height=\"14\" aria-hidden=\"true\">"
			"<path class=\"%s\" d=\"M7 7h0\"></path></svg> %s</li>",
			arms[arm].css, arms[arm].means);
	fputs("</ul></figure>\n", p->f);
}
