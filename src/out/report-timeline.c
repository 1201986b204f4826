/* SPDX-License-Identifier: MIT */
/* The timeline of `sbinject report`: how much of each stretch of time a thread spent in calls. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "out.h"
#include "src/base/must.h"
#include "src/base/text.h"

enum { ROWS_MAX = 60, LABEL_MAX = 28, WIDTH_LEAST = 10 };

/* Of a column that is covered by so much; the first is for nothing at all. */
static const char shades[] = " .:-=+*%#";

struct scale {
	size_t columns;
	uint64_t from, to; /* CLOCK_MONOTONIC */
};

/* What the bins hold of [from, to). */
static double covered(const struct sum *sum, const struct sum_thread *t, double from, double to)
{
	double width = (double)sum->bin_ns, base = (double)sum->bins_from_ns, ns = 0;

	for (size_t i = 0; t->bin && i < SUM_BINS; i++) {
		double a = base + (double)i * width, b = a + width;

		if (!t->bin[i] || b <= from || a >= to)
			continue;
		ns += (double)t->bin[i] * ((b < to ? b : to) - (a > from ? a : from)) / width;
	}
	return ns;
}

static char shade(double share)
{
	int most = (int)sizeof(shades) - 2, i = (int)(share * most + 0.999);

	return share <= 0 ? ' ' : shades[i > most ? most : i];
}

static void print_row(FILE *to, const struct sum *sum, const struct sum_thread *t,
		      const struct scale *scale, const char *label)
{
	double step = (double)(scale->to - scale->from) / (double)scale->columns;

	fprintf(to, "%s%*s |", label, (int)(LABEL_MAX - text_width(label)), "");
	for (size_t i = 0; i < scale->columns; i++) {
		double from = (double)scale->from + (double)i * step;

		fputc(shade(covered(sum, t, from, from + step) / step), to);
	}
	fputs("|\n", to);
}

static char *label_of(const struct sum_thread *t)
{
	char *whole, *shown, *label;

	if (asprintf(&whole, "%" PRId32 "/%" PRId32 " %s", t->pid, t->tid,
		     t->name ? t->name : "-") < 0)
		abort();
	shown = text_show(whole);
	label = text_middle(shown, LABEL_MAX);
	free(shown);
	free(whole);
	return label;
}

static void print_axis(FILE *to, const struct sum *sum, const struct scale *scale)
{
	char from[32], end[32];
	int gap;

	snprintf(from, sizeof(from), "%.6fs", (double)(scale->from - sum->begin_ns) / 1e9);
	snprintf(end, sizeof(end), "%.6fs", (double)(scale->to - sum->begin_ns) / 1e9);
	gap = (int)scale->columns - (int)strlen(from) - (int)strlen(end);
	fprintf(to, "%*s  %s%*s%s\n", LABEL_MAX, "", from, gap > 1 ? gap : 1, "", end);
	fprintf(to,
		"%*s  in calls: ' ' never, '.' less than an eighth of the time, '#' all of it\n",
		LABEL_MAX, "");
}

void out_report_timeline(FILE *to, const struct sum *sum)
{
	size_t width = out_columns(to), rows = 0, more = 0;
	struct scale scale = { WIDTH_LEAST, sum->first_ns, sum->last_ns };

	if (width > LABEL_MAX + 3 + WIDTH_LEAST)
		scale.columns = width - LABEL_MAX - 3;
	if (!sum->spans)
		return;
	scale.to += scale.to == scale.from;
	fputs("\ntimeline (pid/tid thread):\n", to);
	for (size_t i = 0; i < sum->n_threads; i++) {
		const struct sum_thread *t = &sum->thread[i];
		char *label;

		if (!t->spans)
			continue;
		if (rows == ROWS_MAX || !t->bin) {
			more++;
			continue;
		}
		rows++;
		label = label_of(t);
		print_row(to, sum, t, &scale, label);
		free(label);
	}
	if (more)
		fprintf(to, "  and %zu more threads (--thread, --pid choose some)\n", more);
	print_axis(to, sum, &scale);
}
