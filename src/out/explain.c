/* SPDX-License-Identifier: MIT */
/* Where the time of an item goes, as tables. */
#include "explain.h"

#include <math.h>
#include "grid.h"
#include "out.h"

enum { THREADS_MAX = 20 };

static const struct out_col reason_cols[] = {
	{ "reason", OUT_TEXT, 0 },
	{ "per item", OUT_FIGURE, 2 },
	{ "95% interval", OUT_TEXT, 2 },
	{ "share", OUT_FIGURE, 2 },
};

static void add_interval(struct out_grid *grid, struct ratio r)
{
	char lo[32], hi[32];

	if (isnan(r.lo))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "[%s, %s]", out_time(fmax(0, r.lo), lo, sizeof(lo)),
			     out_time(r.hi, hi, sizeof(hi)));
}

static void add_row(struct out_grid *grid, const char *name, struct ratio r, double whole)
{
	char text[32];

	out_grid_add(grid, "%s", name);
	out_grid_add(grid, "%s", out_time(r.est, text, sizeof(text)));
	add_interval(grid, r);
	if (isnan(r.est))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%.1f%%", 100 * r.est / whole);
}

static void print_reasons(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { reason_cols, sizeof(reason_cols) / sizeof(reason_cols[0]), NULL,
				 0 };
	double whole = res->time_per_item.est;

	for (int r = 0; r < EVIDENCE_REASONS; r++)
		if (!res->unknown[r])
			add_row(&grid, evidence_reason(r), res->whole.reason[r], whole);
	if (res->limit.code)
		add_row(&grid, "off_cpu", res->whole.off_cpu, whole);
	out_grid_print(&grid, to);
}

static const struct out_col thread_cols[] = {
	{ "tid", OUT_FIGURE, 0 },     { "thread", OUT_NAME, 2 },
	{ "on_cpu", OUT_FIGURE, 2 },  { "run_queue", OUT_FIGURE, 2 },
	{ "futex", OUT_FIGURE, 2 },   { "io", OUT_FIGURE, 2 },
	{ "network", OUT_FIGURE, 2 }, { "page_fault", OUT_FIGURE, 2 },
	{ "sleep", OUT_FIGURE, 2 },   { "other", OUT_FIGURE, 2 },
};

static void print_threads(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { thread_cols, sizeof(thread_cols) / sizeof(thread_cols[0]), NULL,
				 0 };
	char text[32];

	if (res->n_threads < 2)
		return;
	for (size_t i = 0; i < res->n_threads && i < THREADS_MAX; i++) {
		const struct explain_thread *t = &res->thread[i];

		out_grid_add(&grid, "%d", t->tid);
		out_grid_add(&grid, "%s", t->name[0] ? t->name : "-");
		for (int r = 0; r < EVIDENCE_REASONS; r++)
			out_grid_add(&grid, "%s",
				     out_time(t->part.reason[r].est, text, sizeof(text)));
	}
	fputs("\nby thread, per item, the busiest first\n", to);
	out_grid_print(&grid, to);
	if (res->n_threads > THREADS_MAX)
		fprintf(to, "and %zu more\n", res->n_threads - THREADS_MAX);
}

static void print_head(FILE *to, const struct explain_result *res)
{
	char t[32], lo[32], hi[32];

	if (!res->progress) {
		fprintf(to, "a second of a thread, of %.1f s watched\n", res->time_s);
		return;
	}
	fprintf(to, "an item takes %s", out_time(res->time_per_item.est, t, sizeof(t)));
	if (!isnan(res->time_per_item.lo))
		fprintf(to, " [%s, %s]", out_time(fmax(0, res->time_per_item.lo), lo, sizeof(lo)),
			out_time(res->time_per_item.hi, hi, sizeof(hi)));
	fprintf(to, ": %.0f items in %.1f s; of that the average thread spends\n", res->items,
		res->time_s);
}

static void print_notices(FILE *to, const struct explain_result *res)
{
	if (res->limit.code)
		fprintf(to, "what threads wait for is not known: %s; %s\n", res->limit.what,
			err_remedy(&res->limit));
	else if (!res->adds_up && !isnan(res->off_by))
		fprintf(to, "the parts do not add up: the sum of a thread is off by %.1f%%\n",
			100 * res->off_by);
	if (res->idle)
		fprintf(to, "%zu thread%s did nothing meanwhile: left out\n", res->idle,
			res->idle == 1 ? "" : "s");
	if (res->lost)
		fprintf(to, "%llu thread%s %s\n", (unsigned long long)res->lost,
			res->lost == 1 ? "" : "s",
			res->limit.code ?
				"ended, and what it did after the last look is not counted" :
				"could not be watched: too many at one time");
	if (res->ended_early)
		fprintf(to, "ended after %.1f s\n", res->time_s);
}

void out_explain_table(FILE *to, const struct explain_result *res)
{
	print_head(to, res);
	print_reasons(to, res);
	print_threads(to, res);
	print_notices(to, res);
}
