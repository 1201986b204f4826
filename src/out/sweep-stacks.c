/* SPDX-License-Identifier: MIT */
/* Where the time of an item goes without and with the delay: two bars for each target, as SVG. */
#include <math.h>
#include "markup.h"
#include "out.h"
#include "sweep-changes.h"
#include "sweep-words.h"

enum { WIDTH = 900, LEFT = 110, RIGHT = 110, BAR = 24, GAP = 8, HEAD = 26, FOOT = 30 };

static const struct {
	size_t counter;
	const char *name, *colour;
} layers[] = {
	{ EVIDENCE_ON_CPU, "on CPU", "#4477aa" },
	{ EVIDENCE_RUN_QUEUE, "run queue", "#ee6677" },
	{ EVIDENCE_FUTEX, "futex", "#ccbb44" },
	{ EVIDENCE_IO, "I/O", "#228833" },
	{ EVIDENCE_NETWORK, "network", "#66ccee" },
	{ EVIDENCE_PAGE_FAULT, "page fault", "#aa3377" },
	{ EVIDENCE_SLEEP, "sleep", "#dddddd" },
	{ EVIDENCE_OTHER, "other", "#999999" },
	{ SIDES_OFF_CPU, "off CPU", "#ccbb44" },
};
enum { LAYERS = sizeof(layers) / sizeof(*layers) };

static double level(const struct sweep_target *t, size_t counter, bool with)
{
	const struct sweep_change *c = &t->change[counter]; /* SIDE_DELAYED is first */
	double v = with ? c->dose : c->sham;

	return isfinite(v) ? v : 0;
}

static double total(const struct sweep_target *t, bool with)
{
	double sum = 0;

	for (size_t i = 0; i < LAYERS; i++)
		sum += level(t, layers[i].counter, with);
	return sum;
}

static void bar(FILE *f, const struct sweep_target *t, bool with, int y, double scale)
{
	char text[32];
	double x = LEFT;

	fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8,
		y + BAR * 2 / 3, with ? "with" : "without");
	for (size_t i = 0; i < LAYERS; i++) {
		double ns = level(t, layers[i].counter, with);

		if (!(ns > 0))
			continue;
		fprintf(f,
			"<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\">"
			"<title>%s: %s</title></rect>\n",
			x, y, ns * scale, BAR, layers[i].colour, layers[i].name,
			out_time(ns, text, sizeof(text)));
		x += ns * scale;
	}
	fprintf(f, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x + 6, y + BAR * 2 / 3,
		out_time(total(t, with), text, sizeof(text)));
}

/* Only what is there. */
static void legend(FILE *f, const struct sweep_target *t, int y)
{
	int x = LEFT;

	for (size_t i = 0; i < LAYERS; i++) {
		if (!(level(t, layers[i].counter, false) + level(t, layers[i].counter, true) > 0))
			continue;
		fprintf(f,
			"<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"%d\">%s</text>\n",
			x, y, layers[i].colour, x + 16, y + 11, layers[i].name);
		x += 94;
	}
}

static void stack(FILE *f, const struct sweep_target *t)
{
	double most = fmax(total(t, false), total(t, true));
	double scale = (WIDTH - LEFT - RIGHT) / most;
	int height = HEAD + 2 * (BAR + GAP) + FOOT;

	if (!(most > 0))
		return;
	fprintf(f,
		"<svg class=\"stack\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"13\">\n<text x=\"%d\" y=\"16\" "
		"font-weight=\"bold\">",
		WIDTH, height, LEFT);
	out_markup(f, t->spec);
	fprintf(f, " (%s)</text>\n", sweep_verdict_name(t->verdict));
	bar(f, t, false, HEAD, scale);
	bar(f, t, true, HEAD + BAR + GAP, scale);
	legend(f, t, HEAD + 2 * (BAR + GAP) + 4);
	fputs("</svg>\n", f);
}

void out_sweep_stacks(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about,
		      size_t n)
{
	bool any = false;

	if (!about->sides || !about->sides->read)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct sweep_target *t = &res->target[i];

		if (!t->change || t->n_doses < 2)
			continue;
		if (!any)
			fputs("<h2>Where the time of an item goes</h2>\n<p>Of the threads that "
			      "were "
			      "delayed, without a delay and with the largest one.</p>\n",
			      to);
		any = true;
		stack(to, t);
	}
}
