/* SPDX-License-Identifier: MIT */
#include "report-caused.h"

#include <inttypes.h>
#include <stdlib.h>
#include "grid.h"
#include "src/base/json.h"
#include "src/base/must.h"

enum { SHOWN = 20 };

static const struct out_col cols[] = {
	{ "launches", OUT_FIGURE, 0 }, { "per call", OUT_FIGURE, 2 }, { "within", OUT_FIGURE, 2 },
	{ "calls", OUT_FIGURE, 2 },    { "function", OUT_NAME, 2 },
};

static uint64_t calls_of(const struct sum_function *f)
{
	return f->of[TRACE_CALL] ? f->of[TRACE_CALL]->n : 0;
}

static int most_first(const void *a, const void *b)
{
	const struct sum_function *x = *(const struct sum_function *const *)a;
	const struct sum_function *y = *(const struct sum_function *const *)b;

	if (x->launches_own != y->launches_own)
		return x->launches_own < y->launches_own ? 1 : -1;
	if (x->launches_within != y->launches_within)
		return x->launches_within < y->launches_within ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

/* The caller frees. */
static const struct sum_function **rows_of(const struct sum *sum, size_t *n)
{
	const struct sum_function **row = must_calloc(sum->n_functions + 1, sizeof(*row));

	*n = 0;
	for (size_t i = 0; i < sum->n_functions; i++)
		if (sum->function[i].launches_within)
			row[(*n)++] = &sum->function[i];
	qsort(row, *n, sizeof(*row), most_first);
	return row;
}

static bool sums_up(const struct sum_caused *c)
{
	return c->python + c->none == c->launches;
}

void out_report_caused(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { cols, sizeof(cols) / sizeof(*cols), NULL, 0 };
	const struct sum_caused *c = &sum->caused;
	size_t n;
	const struct sum_function **row = rows_of(sum, &n);

	for (size_t i = 0; i < n && i < SHOWN; i++) {
		uint64_t calls = calls_of(row[i]);

		out_grid_add(&grid, "%" PRIu64, row[i]->launches_own);
		out_grid_add(&grid, "%.4g", (double)row[i]->launches_own / (double)calls);
		out_grid_add(&grid, "%" PRIu64, row[i]->launches_within);
		out_grid_add(&grid, "%" PRIu64, calls);
		out_grid_add(&grid, "%s%s%s", row[i]->module ? row[i]->module : "",
			     row[i]->module ? ":" : "", row[i]->name ? row[i]->name : "?");
	}
	free(row);
	if (!n)
		return;
	fputs("\nlaunches by Python function (the innermost one above them in the trace; within: "
	      "with those of Python functions that it calls):\n",
	      to);
	out_grid_print(&grid, to);
	if (n > SHOWN)
		fprintf(to, "  and %zu more functions (--json has them)\n", n - SHOWN);
	fprintf(to,
		"  %" PRIu64 " of %" PRIu64 " launches are in no Python function of the trace\n",
		c->none, c->launches);
	if (!sums_up(c))
		fprintf(to, "  these do not add up: %" PRIu64 " are in one\n", c->python);
}

void out_report_caused_put(json_t *cuda, const struct sum *sum)
{
	json_t *list = json_must(json_array());
	size_t n;
	const struct sum_function **row = rows_of(sum, &n);

	for (size_t i = 0; i < n; i++)
		json_add(list,
			 json_must(json_pack("{s:s?, s:s?, s:I, s:I, s:I}", "module",
					     row[i]->module, "function", row[i]->name, "calls",
					     (json_int_t)calls_of(row[i]), "launches",
					     (json_int_t)row[i]->launches_own, "launches_within",
					     (json_int_t)row[i]->launches_within)));
	free(row);
	json_put(cuda, "launches", json_must(json_integer((json_int_t)sum->caused.launches)));
	json_put(cuda, "launches_by_python", list);
	json_put(cuda, "launches_in_no_python",
		 json_must(json_integer((json_int_t)sum->caused.none)));
}
