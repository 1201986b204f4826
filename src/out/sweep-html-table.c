/* SPDX-License-Identifier: MIT */
/* The page's table: for each target its verdict, kappa, own time and gain ceiling, with bars. */
#include <math.h>
#include "page.h"
#include "sweep-gain.h"
#include "sweep-html.h"
#include "sweep/verdict.h"

struct bar_scale {
	double from, to;
};

static const struct {
	const char *mark, *css, *means;
} verdicts[VERDICT_COUNT] = {
	[VERDICT_CRITICAL] = { "\xe2\x96\xb2", "felt", "felt in full" }, /* a triangle */
	[VERDICT_PARTIAL] = { "\xe2\x97\x90", "part", "felt in part" },	 /* half a circle */
	[VERDICT_SLACK] = { "\xe2\x97\x94", "hid", "hidden up to a slack" },
	[VERDICT_HIDDEN] = { "\xe2\x97\x8b", "hid", "hidden" },
	[VERDICT_INCONCLUSIVE] = { "?", "open", "not known" },
	[VERDICT_NOT_CALLED] = { "\xe2\x88\x85", "open", "not called" },
	[VERDICT_INVALID] = { "\xc3\x97", "open", "not known: its figures have no meaning" },
};

const char *sweep_page_meaning(const struct sweep_page *p, const struct sweep_target *t)
{
	if (t->verdict == VERDICT_PARTIAL && verdict_may_be_full(t, p->res->threshold))
		return "felt, in part or in full";
	return verdicts[t->verdict].means;
}

void sweep_page_verdict(const struct sweep_page *p, const struct sweep_target *t)
{
	fprintf(p->f, "<span class=\"verdict %s\"><span aria-hidden=\"true\">%s</span> %s</span>",
		verdicts[t->verdict].css, verdicts[t->verdict].mark,
		sweep_verdict_name(t->verdict));
}

static double percent(struct bar_scale s, double v)
{
	return 100 * (v - s.from) / (s.to - s.from);
}

static void rule(FILE *f, struct bar_scale s, double at, const char *css)
{
	double x = percent(s, at);

	if (x >= 0 && x <= 100)
		fprintf(f,
			"<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"20\"></line>",
			css, x, x);
}

/* One end of an interval: a stroke, or an arrow where it goes on beyond the axis. */
static void end_mark(FILE *f, struct bar_scale s, double at)
{
	double x = percent(s, at);

	if (x < 0)
		fputs("<svg x=\"0%\" overflow=\"visible\"><path class=\"arrow\" d=\"M0 10l7-4v8z\">"
		      "</path></svg>",
		      f);
	else if (x > 100)
		fputs("<svg x=\"100%\" overflow=\"visible\"><path class=\"arrow\" "
		      "d=\"M0 10l-7-4v8z\"></path></svg>",
		      f);
	else
		fprintf(f,
			"<line class=\"ci\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"6\" y2=\"14\"></line>",
			x, x);
}

static double within(double percent)
{
	return fmin(fmax(percent, 0), 100);
}

/* From zero to the estimate, with the interval as a line over it. The figures are beside it. */
static void bar(const struct sweep_page *p, struct bar_scale s, struct sweep_estimate e,
		const char *css, double mark)
{
	double zero = within(percent(s, 0)), at = within(percent(s, e.est));

	if (!isfinite(e.est))
		return;
	fprintf(p->f,
		"<svg class=\"bar %s\" width=\"100%%\" height=\"20\" aria-hidden=\"true\">"
		"<rect x=\"%.2f%%\" width=\"%.2f%%\" y=\"5\" height=\"10\"></rect>",
		css, fmin(zero, at), fabs(at - zero));
	rule(p->f, s, 0, "zero");
	rule(p->f, s, mark, "mark");
	if (!isnan(e.lo) && !isnan(e.hi)) {
		fprintf(p->f,
			"<line class=\"ci\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"10\" y2=\"10\">"
			"</line>",
			within(percent(s, e.lo)), within(percent(s, e.hi)));
		end_mark(p->f, s, e.lo);
		end_mark(p->f, s, e.hi);
	}
	fputs("</svg>", p->f);
}

/* Wide enough for what is proven; what is not may have any interval. */
static struct bar_scale kappa_scale(const struct sweep_page *p)
{
	struct bar_scale s = { 0, 1.2 };

	for (size_t i = 0; i < p->n; i++) {
		const struct sweep_target *t = &p->res->target[i];

		if (!out_sweep_proven(t))
			continue;
		if (isfinite(t->kappa.hi))
			s.to = fmax(s.to, t->kappa.hi * 1.05);
		if (isfinite(t->kappa.lo))
			s.from = fmin(s.from, fmax(t->kappa.lo, -0.5));
	}
	return s;
}

/* Own time and gain on one axis: what is to win is a part of what is spent, and both of an item. */
static struct bar_scale time_scale(const struct sweep_page *p)
{
	struct bar_scale s = { 0, 0 };

	for (size_t i = 0; i < p->n; i++) {
		const struct sweep_target *t = &p->res->target[i];

		if (isfinite(t->t0_ns))
			s.to = fmax(s.to, t->t0_ns);
		if (isfinite(t->inclusive_ns.est))
			s.to = fmax(s.to, t->inclusive_ns.est);
	}
	s.to = s.to > 0 ? s.to * 1.05 : 1;
	return s;
}

static void cell(const struct sweep_page *p, const char *label)
{
	fprintf(p->f, "<td role=\"cell\"><span class=\"label\" aria-hidden=\"true\">%s</span>",
		label);
}

static void kappa_cell(const struct sweep_page *p, const struct sweep_target *t, struct bar_scale s)
{
	cell(p, "kappa");
	fputs("<b>", p->f);
	page_figure(p->f, PAGE_KAPPA, t->kappa.est);
	fputs("</b> ", p->f);
	if (isfinite(t->kappa.est))
		page_interval(p->f, PAGE_KAPPA, t->kappa);
	bar(p, s, t->kappa, out_sweep_proven(t) ? "proven" : "unproven", 1);
	fputs("</td>\n", p->f);
}

static void time_cell(const struct sweep_page *p, const char *label, struct sweep_estimate e)
{
	cell(p, label);
	fputs("<b>", p->f);
	page_figure(p->f, PAGE_TIME, e.est);
	fputs("</b> ", p->f);
	if (isfinite(e.est))
		page_interval(p->f, PAGE_TIME, e);
}

static void gain_cell(const struct sweep_page *p, const struct sweep_target *t, struct bar_scale s)
{
	struct sweep_estimate share = out_sweep_gain_share(t);

	time_cell(p, "gain ceiling", out_sweep_gain(t));
	if (isfinite(share.est)) {
		fputs("<span class=\"share\">", p->f);
		page_figure(p->f, PAGE_SHARE, share.est);
		fputs(" ", p->f);
		page_interval(p->f, PAGE_SHARE, share);
		fprintf(p->f, " of a%s %s</span>", *p->unit == 'i' ? "n" : "", p->unit);
	}
	bar(p, s, out_sweep_gain(t), "gain", t->t0_ns);
	fputs("</td>\n", p->f);
}

static void row(const struct sweep_page *p, const struct sweep_target *t, struct bar_scale kappa,
		struct bar_scale time)
{
	fputs("<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">", p->f);
	page_name(p->f, t->spec);
	fputs("</th>\n", p->f);
	cell(p, "verdict");
	sweep_page_verdict(p, t);
	fprintf(p->f, "<span class=\"means\">%s%s</span></td>\n", sweep_page_meaning(p, t),
		t->screened ? ", judged in a group" : "");
	kappa_cell(p, t, kappa);
	time_cell(p, "own time", t->inclusive_ns);
	bar(p, time, t->inclusive_ns, "own", t->t0_ns);
	fputs("</td>\n", p->f);
	gain_cell(p, t, time);
	cell(p, "whole");
	page_figure(p->f, PAGE_TIME, t->t0_ns);
	fputs("</td></tr>\n", p->f);
}

static void head(const struct sweep_page *p)
{
	const char *an = *p->unit == 'i' ? "an" : "a";

	fprintf(p->f,
		"<table role=\"table\" class=\"wide\">\n<caption>What a delay of each function "
		"does, and what there is to win. Intervals are of 95 %%; bars begin at zero. "
		"</caption>\n"
		"<thead role=\"rowgroup\"><tr role=\"row\">"
		"<th role=\"columnheader\" scope=\"col\">function</th>"
		"<th role=\"columnheader\" scope=\"col\">verdict</th>"
		"<th role=\"columnheader\" scope=\"col\">kappa: the part of a delay that is felt"
		"<small>the line is at 1: all of it</small></th>"
		"<th role=\"columnheader\" scope=\"col\">own time of %s %s"
		"<small>callees included</small></th>"
		"<th role=\"columnheader\" scope=\"col\">gain ceiling<small>the most that it would "
		"save if it took no time; the line is the whole %s</small></th>"
		"<th role=\"columnheader\" scope=\"col\">whole %s</th></tr></thead>\n"
		"<tbody role=\"rowgroup\">\n",
		an, p->unit, p->unit, p->unit);
}

void sweep_page_table(const struct sweep_page *p)
{
	struct bar_scale kappa = kappa_scale(p), time = time_scale(p);

	if (!p->n)
		return;
	head(p);
	for (size_t i = 0; i < p->n; i++)
		row(p, &p->res->target[p->order[i]], kappa, time);
	fputs("</tbody></table>\n", p->f);
}
