/* SPDX-License-Identifier: MIT */
/*
 * The summary of a run, how long calls took: a table of the timed targets, and below it what it
 * does not hold: calls that were not seen to return, and functions that are not timed.
 */
#include "times.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "out.h"
#include "src/base/must.h"

enum { REASONS_MAX = 3 /* of a target; the rest is counted */ };

static const struct out_col times_cols[] = {
	{ "target", OUT_NAME, 0 },   { "calls", OUT_FIGURE, 2 }, { "mean", OUT_FIGURE, 1 },
	{ "p50", OUT_FIGURE, 1 },    { "p90", OUT_FIGURE, 1 },	 { "p99", OUT_FIGURE, 1 },
	{ "max", OUT_FIGURE, 1 },    { "total", OUT_FIGURE, 1 }, { "own", OUT_FIGURE, 1 },
	{ "missed", OUT_FIGURE, 2 },
};

static void add_time(struct out_grid *grid, bool known, double ns)
{
	char buf[32];

	out_grid_add(grid, "%s", known ? out_time(ns, buf, sizeof(buf)) : "-");
}

static void add_count(struct out_grid *grid, bool known, uint64_t n)
{
	if (known)
		out_grid_add(grid, "%" PRIu64, n);
	else
		out_grid_add(grid, "-");
}

static const char *text_of(const char *text)
{
	return text ? text : "-";
}

static void add_target(struct out_grid *grid, const struct result_target *target)
{
	const struct result_times *t = &target->times;
	bool known = target->n_sites, some = t->calls; /* never hooked: unknown, not 0 */

	out_grid_add(grid, "%s", target->spec ? target->spec : "-");
	add_count(grid, known, t->calls);
	add_time(grid, some, some ? (double)t->inclusive_ns / (double)t->calls : 0);
	add_time(grid, some, (double)t->p50_ns);
	add_time(grid, some, (double)t->p90_ns);
	add_time(grid, some, (double)t->p99_ns);
	add_time(grid, some, (double)t->max_ns);
	add_time(grid, known, (double)t->inclusive_ns);
	add_time(grid, known && t->own_known, (double)t->exclusive_ns);
	add_count(grid, known, t->missed);
}

static int by_total(const void *a, const void *b)
{
	const struct result_target *x = *(struct result_target *const *)a,
				   *y = *(struct result_target *const *)b;

	if (x->times.inclusive_ns != y->times.inclusive_ns)
		return x->times.inclusive_ns < y->times.inclusive_ns ? 1 : -1;
	return (x > y) - (x < y);
}

void out_times(FILE *to, const struct result *res, bool sorted)
{
	struct out_grid grid = { times_cols, sizeof(times_cols) / sizeof(times_cols[0]), NULL, 0 };
	struct result_target **timed = must_calloc(res->n_targets + 1, sizeof(*timed));
	size_t n = 0;

	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].times.known)
			timed[n++] = &res->target[i];
	if (sorted)
		qsort(timed, n, sizeof(*timed), by_total);
	for (size_t i = 0; i < n; i++)
		add_target(&grid, timed[i]);
	if (n)
		out_grid_print(&grid, to);
	free(timed);
}

/* Reasons, up to the details that differ from function to function. */

static size_t reason_length(const char *reason)
{
	const char *detail = strstr(reason, ": ");

	return detail ? (size_t)(detail - reason) : strlen(reason);
}

static bool same_reason(const struct result_refused *a, const struct result_refused *b)
{
	const char *x = text_of(a->reason), *y = text_of(b->reason);
	size_t n = reason_length(x);

	return n == reason_length(y) && !strncmp(x, y, n);
}

struct reason {
	const struct result_refused *example;
	size_t n;
};

static int by_number(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->example > y->example) - (x->example < y->example);
}

/* The distinct reasons, the commonest first. The caller frees. */
static struct reason *reasons_of(const struct result_target *target, size_t *n)
{
	struct reason *list = must_calloc(target->n_untimed + 1, sizeof(*list));

	*n = 0;
	for (size_t i = 0; i < target->n_untimed; i++) {
		const struct result_refused *r = &target->untimed[i];
		size_t k = 0;

		while (k < *n && !same_reason(list[k].example, r))
			k++;
		if (k == *n)
			list[(*n)++].example = r;
		list[k].n++;
	}
	qsort(list, *n, sizeof(*list), by_number);
	return list;
}

/* One function: with its name and its whole reason. Several: by reason, each with an example. */
static void print_untimed(FILE *to, const struct result_target *target)
{
	struct reason *list;
	size_t n;

	if (!target->n_untimed)
		return;
	list = reasons_of(target, &n);
	fprintf(to, "not timed: %zu function%s of ", target->n_untimed,
		target->n_untimed > 1 ? "s" : "");
	out_shown(to, target->spec);
	fputs(target->n_untimed > 1 ? " (each: --json, sites_untimed):\n" : ":\n", to);
	for (size_t i = 0; i < n && i < REASONS_MAX; i++) {
		const struct result_refused *r = list[i].example;

		fprintf(to, list[i].n > 1 ? "  %zu as " : "  ", list[i].n);
		out_shown(to, r->name ? r->name : r->symbol);
		fputs(": ", to);
		out_shown(to, r->reason);
		fputc('\n', to);
	}
	if (n > REASONS_MAX)
		fprintf(to, "  and %zu more reason%s\n", n - REASONS_MAX,
			n > REASONS_MAX + 1 ? "s" : "");
	free(list);
}

void out_times_notices(FILE *to, const struct result *res)
{
	uint64_t missed = 0;

	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].times.known)
			missed += res->target[i].times.missed;
	if (missed)
		fputs("missed: calls of which no return was seen (an exception, longjmp(), the end "
		      "of the thread, still in progress, a function that is not timed); no other "
		      "figure has them\n",
		      to);
	for (size_t i = 0; i < res->n_targets; i++)
		print_untimed(to, &res->target[i]);
}
