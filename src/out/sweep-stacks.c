/* SPDX-License-Identifier: MIT */
/* Where the time of an item goes without and with the delay: two bars for a target, and their
 * figures. */
#include <math.h>
#include "page.h"
#include "sweep-changes.h"

enum { BAR = 24, WORD = 18, FOOT = 22, MARKS = 4 };

/* The words stand above the bars, which begin at the left: so they fit a narrow screen. */
static const char *const words[] = { "without a delay", "with the largest delay" };

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

static bool has_stack(const struct sweep_target *t, const struct out_sweep_about *about)
{
	return about->sides && about->sides->read && t->change && t->n_doses >= 2 &&
	       fmax(total(t, false), total(t, true)) > 0;
}

double out_sweep_stack_most(const struct sweep_result *res, const struct out_sweep_about *about,
			    size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		if (has_stack(&res->target[i], about))
			most = fmax(most, fmax(total(&res->target[i], false),
					       total(&res->target[i], true)));
	return most;
}

static void bar(FILE *f, const struct sweep_target *t, bool with, int y, double most)
{
	double x = 0;

	fprintf(f, "<text x=\"0\" y=\"%d\">%s</text>\n", y + WORD - 5, words[with]);
	for (size_t i = 0; i < LAYERS; i++) {
		double share = 100 * level(t, layers[i].counter, with) / most;

		if (!(share > 0))
			continue;
		fprintf(f,
			"<rect x=\"%.3f%%\" y=\"%d\" width=\"%.3f%%\" height=\"%d\" "
			"fill=\"%s\"><title>%s</title></rect>\n",
			x, y + WORD, share, BAR, layers[i].colour, layers[i].name);
		x += share;
	}
}

static void axis(FILE *f, int y, double most)
{
	double step = page_step(most, MARKS);
	char text[32];

	for (double v = 0; v <= most * 1.0001; v += step)
		fprintf(f,
			"<text class=\"tick\" x=\"%.2f%%\" y=\"%d\" text-anchor=\"%s\">%s</text>\n",
			100 * v / most, y + 15,
			v > 0.95 * most ? "end" :
			v > 0		? "middle" :
					  "start",
			page_tick(v, text, sizeof(text)));
}

static void picture(FILE *f, const struct sweep_target *t, double most, size_t id)
{
	int height = 2 * (WORD + BAR) + FOOT;

	fprintf(f,
		"<svg class=\"stack\" width=\"100%%\" height=\"%d\" role=\"img\" "
		"aria-labelledby=\"st%zu sd%zu\" data-scale=\"0 %.6g\">\n<title id=\"st%zu\">Where "
		"the time goes</title>\n<desc id=\"sd%zu\">The time of the delayed threads, "
		"without "
		"a delay and with the largest one, by what they do in it. The figures are in the "
		"table below.</desc>\n",
		height, id, id, most, id, id);
	bar(f, t, false, 0, most);
	bar(f, t, true, WORD + BAR, most);
	axis(f, 2 * (WORD + BAR), most);
	fputs("</svg>\n", f);
}

/* Only what is there. */
static void figures(FILE *f, const struct sweep_target *t)
{
	fputs("<table><thead><tr><th scope=\"col\">what the threads do</th><th "
	      "scope=\"col\">without"
	      "</th><th scope=\"col\">with</th></tr></thead>\n<tbody>\n",
	      f);
	for (size_t i = 0; i < LAYERS; i++) {
		const struct sweep_change *c = &t->change[layers[i].counter];

		if (!(level(t, layers[i].counter, false) + level(t, layers[i].counter, true) > 0))
			continue;
		fprintf(f,
			"<tr><th scope=\"row\"><svg class=\"swatch\" width=\"12\" height=\"12\" "
			"aria-hidden=\"true\"><rect width=\"12\" height=\"12\" fill=\"%s\"></rect>"
			"</svg> %s</th><td>",
			layers[i].colour, layers[i].name);
		page_figure(f, PAGE_TIME, c->sham);
		fputs("</td><td>", f);
		page_figure(f, PAGE_TIME, c->dose);
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody></table>\n", f);
}

void out_sweep_stack(FILE *to, const struct sweep_target *t, const struct out_sweep_about *about,
		     double most, size_t id)
{
	if (!has_stack(t, about))
		return;
	fputs("<figure class=\"where\"><figcaption>Where the time goes, in the threads that were "
	      "delayed</figcaption>\n",
	      to);
	picture(to, t, most, id);
	figures(to, t);
	fputs("</figure>\n", to);
}
