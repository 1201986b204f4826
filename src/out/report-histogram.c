/* SPDX-License-Identifier: MIT */
/* How the calls of each function are spread, by powers of two of their time: `report --histogram`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "grid.h"
#include "out.h"
#include "report-rows.h"
#include "report.h"

enum { BAR = 50 };

static const struct out_col cols[] = {
	{ "from", OUT_FIGURE, 2 },
	{ "below", OUT_FIGURE, 2 },
	{ "calls", OUT_FIGURE, 2 },
	{ "", OUT_TEXT, 2 },
};

static void add_bound(struct out_grid *grid, unsigned int row)
{
	char text[32];

	out_grid_add(grid, "%s", out_time((double)hist_from(row), text, sizeof(text)));
}

/* Rows without calls between two that have some are shown: gaps are a part of the shape. */
static void print_one(FILE *to, const struct sum *sum, const struct report_row *row)
{
	static const char bar[] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
	struct out_grid grid = { cols, sizeof(cols) / sizeof(*cols), NULL, 0 };
	unsigned int first = HIST_ROWS, last = 0;
	uint64_t most = 1;

	for (unsigned int i = 0; i < HIST_ROWS; i++) {
		uint64_t n = hist_in(&sum->pool, &row->times->hist, i);

		if (!n)
			continue;
		first = first < i ? first : i;
		last = i;
		most = most > n ? most : n;
	}
	for (unsigned int i = first; i <= last && i < HIST_ROWS; i++) {
		uint64_t n = hist_in(&sum->pool, &row->times->hist, i);
		int width = (int)((double)n / (double)most * BAR);

		add_bound(&grid, i);
		add_bound(&grid, i + 1);
		out_grid_add(&grid, "%" PRIu64, n);
		out_grid_add(&grid, "|%-*.*s|", BAR, width, bar);
	}
	fprintf(to, "\ntimes of %s", row->kind == TRACE_DELAY ? "delay: " : "");
	out_shown(to, row->f->name ? row->f->name : "-");
	fprintf(to, ", %" PRIu64 " call%s%s\n", row->times->n, row->times->n == 1 ? "" : "s",
		row->times->hist.incomplete ? "; not all are here: too many different times" : "");
	out_grid_print(&grid, to);
}

void out_report_histogram(FILE *to, const struct sum *sum)
{
	size_t n;
	struct report_row *row = report_rows(sum, &n);

	for (size_t i = 0; i < n && i < REPORT_ROWS_MAX; i++)
		print_one(to, sum, &row[i]);
	if (n > REPORT_ROWS_MAX)
		fprintf(to, "\n  and %zu more (--json has all)\n", n - REPORT_ROWS_MAX);
	free(row);
}
