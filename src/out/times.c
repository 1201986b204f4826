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
#include "preset.h"
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
	char *name = out_target_name(target);

	out_grid_add(grid, "%s", name);
	free(name);
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

static const struct out_col sum_cols[] = {
	{ "target", OUT_NAME, 0 }, { "value", OUT_TEXT, 2 },   { "calls", OUT_FIGURE, 2 },
	{ "sum", OUT_FIGURE, 2 },  { "sum/s", OUT_FIGURE, 2 }, { "mean", OUT_FIGURE, 2 },
};

static void add_sum(struct out_grid *grid, const struct result_target *target,
		    const struct result_value *v)
{
	bool known = target->n_sites && v->sum_known;
	char *name = out_target_name(target), buf[32];

	out_grid_add(grid, "%s", name);
	free(name);
	out_grid_add(grid, "%s", v->name);
	add_count(grid, target->n_sites, v->sum_calls);
	add_count(grid, known, v->sum);
	out_grid_add(grid, "%s",
		     known && target->active_s > 0 ?
			     out_rate((double)v->sum / target->active_s, buf, sizeof(buf)) :
			     "-");
	out_grid_add(grid, "%s",
		     known && v->sum_calls ?
			     out_rate((double)v->sum / (double)v->sum_calls, buf, sizeof(buf)) :
			     "-");
}

/* What sum= adds up. */
static void print_sums(FILE *to, struct result_target *const *timed, size_t n)
{
	struct out_grid grid = { sum_cols, sizeof(sum_cols) / sizeof(sum_cols[0]), NULL, 0 };
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const struct result_times *t = &timed[i]->times;

		for (size_t k = 0; k < t->n_values; k++) {
			if (!t->value[k].summed)
				continue;
			any = true;
			add_sum(&grid, timed[i], &t->value[k]);
		}
	}
	if (!any)
		return;
	fputc('\n', to);
	out_grid_print(&grid, to);
}

void out_times(FILE *to, const struct result *res, bool sorted)
{
	struct out_grid grid = { times_cols, sizeof(times_cols) / sizeof(times_cols[0]), NULL, 0 };
	struct result_target **timed = must_calloc(res->n_targets + 1, sizeof(*timed));
	size_t n = 0;

	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].times.known && !out_preset_folds(&res->target[i]))
			timed[n++] = &res->target[i];
	if (sorted)
		qsort(timed, n, sizeof(*timed), by_total);
	for (size_t i = 0; i < n; i++)
		add_target(&grid, timed[i]);
	if (n)
		out_grid_print(&grid, to);
	print_sums(to, timed, n);
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
	out_target(to, target);
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

/* ---- functions of a target ---- */

enum { FUNCTIONS_MAX = 40 /* of a target; JSON has all */ };

static const struct out_col function_cols[] = {
	{ "own", OUT_FIGURE, 0 },  { "total", OUT_FIGURE, 2 },	{ "calls", OUT_FIGURE, 2 },
	{ "mean", OUT_FIGURE, 2 }, { "p50", OUT_FIGURE, 1 },	{ "p99", OUT_FIGURE, 1 },
	{ "max", OUT_FIGURE, 1 },  { "function", OUT_TEXT, 2 }, { "module", OUT_TEXT, 2 },
};

struct function {
	const struct result_site *site; /* one of its places */
	struct result_times times;	/* of all of them; buckets are its own */
};

static int by_function(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	int c = strcmp(text_of(x->site->name), text_of(y->site->name));

	return c ? c : strcmp(text_of(x->site->module), text_of(y->site->module));
}

/* What it took by itself; where that is not known, with the functions that it called. */
static uint64_t weight(const struct function *f)
{
	return f->times.own_known ? f->times.exclusive_ns : f->times.inclusive_ns;
}

static int by_weight(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (weight(x) != weight(y))
		return weight(x) < weight(y) ? 1 : -1;
	return by_function(a, b);
}

/* Processes may map a function at several addresses: these are one. Returns how many there are. */
static size_t functions_of(const struct result_target *target, struct function *list)
{
	size_t n = 0, m = 0;

	for (size_t i = 0; i < target->n_sites; i++)
		if (target->site[i].times.known)
			list[n++].site = &target->site[i];
	qsort(list, n, sizeof(*list), by_function);
	for (size_t i = 0; i < n; i++) {
		if (m && !by_function(&list[m - 1], &list[i])) {
			result_times_add(&list[m - 1].times, &list[i].site->times);
			continue;
		}
		list[m] = list[i];
		result_times_add(&list[m].times, &list[m].site->times);
		m++;
	}
	qsort(list, m, sizeof(*list), by_weight);
	return m;
}

static void add_function(struct out_grid *grid, const struct function *f)
{
	const struct result_times *t = &f->times;

	add_time(grid, t->own_known, (double)t->exclusive_ns);
	add_time(grid, true, (double)t->inclusive_ns);
	add_count(grid, true, t->calls);
	add_time(grid, true, (double)t->inclusive_ns / (double)t->calls);
	add_time(grid, true, (double)t->p50_ns);
	add_time(grid, true, (double)t->p99_ns);
	add_time(grid, true, (double)t->max_ns);
	out_grid_add(grid, "%s", text_of(f->site->name));
	out_grid_add(grid, "%s", text_of(f->site->module));
}

bool out_times_functions(FILE *to, const struct result_target *target)
{
	struct out_grid grid = { function_cols, sizeof(function_cols) / sizeof(function_cols[0]),
				 NULL, 0 };
	struct function *list = must_calloc(target->n_sites + 1, sizeof(*list));
	size_t n = functions_of(target, list);

	for (size_t i = 0; i < n && i < FUNCTIONS_MAX; i++)
		add_function(&grid, &list[i]);
	if (n) {
		fputs("\nfunctions of ", to);
		out_target(to, target);
		fprintf(to, ", by own time: %zu were called and timed\n", n);
		out_grid_print(&grid, to);
	}
	if (n > FUNCTIONS_MAX)
		fprintf(to, "and %zu more: --json, sites[].spans\n", n - FUNCTIONS_MAX);
	for (size_t i = 0; i < n; i++)
		free(list[i].times.bucket);
	free(list);
	return n;
}
