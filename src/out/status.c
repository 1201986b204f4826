/* SPDX-License-Identifier: MIT */
/*
 * The line of --interval. On a terminal it is rewritten in place and never wider than the
 * terminal: a line that wraps could not be rewritten. Elsewhere it is a plain line.
 */
#include "out.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "src/base/text.h"

#define SEPARATOR    " \xc2\xb7 " /* U+00B7 middle dot */
#define CLEAR_TO_END "\x1b[K"

static void print_target(FILE *to, const struct out_status_target *target, double interval_s)
{
	char rate[32], given[32];
	double per_s = interval_s > 0 ? (double)target->delta.hits / interval_s : NAN;

	out_shown(to, target->spec);
	if (target->pid)
		fprintf(to, " pid=%d", (int)target->pid);
	fprintf(to, " hits %" PRIu64 " %s/s given %s", target->total.hits,
		out_rate(per_s, rate, sizeof(rate)),
		target->given_ns < 0 ? "-" : out_time(target->given_ns, given, sizeof(given)));
	if (target->timed)
		fprintf(to, " took %s",
			target->took_ns < 0 ? "-" :
					      out_time(target->took_ns, given, sizeof(given)));
}

/* The whole line, without its end. The caller frees. */
static char *make_line(const struct out_status *st)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		abort();
	fprintf(to, "%.1fs", st->t_s);
	for (size_t i = 0; i < st->n; i++) {
		fputs(i ? SEPARATOR : " ", to);
		print_target(to, &st->target[i], st->interval_s);
	}
	if (fclose(to))
		abort();
	return text;
}

void out_status(FILE *to, const struct out_status *st, bool terminal)
{
	char *line = make_line(st);

	if (terminal) {
		/* The last column stays free: some terminals wrap as soon as it is written. */
		size_t bytes = text_clip(line, out_columns(to) - 1);

		fprintf(to, "\r%.*s" CLEAR_TO_END, (int)bytes, line);
	} else {
		fprintf(to, "%s\n", line);
	}
	fflush(to);
	free(line);
}
