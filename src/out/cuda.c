/* SPDX-License-Identifier: MIT */
#include "cuda.h"

#include <inttypes.h>
#include <string.h>
#include "grid.h"
#include "out.h"

static const struct result_figure *figure(const struct result *res, const char *name)
{
	for (size_t i = 0; i < res->n_cuda; i++)
		if (!strcmp(res->cuda[i].name, name))
			return &res->cuda[i];
	return NULL;
}

/* ---- by kind ---- */

static const struct out_col kind_cols[] = {
	{ "cuda", OUT_TEXT, 0 },    { "calls", OUT_FIGURE, 2 }, { "calls/s", OUT_FIGURE, 2 },
	{ "bytes", OUT_FIGURE, 2 }, { "time", OUT_FIGURE, 2 },	{ "p50", OUT_FIGURE, 1 },
	{ "p90", OUT_FIGURE, 1 },   { "p99", OUT_FIGURE, 1 },	{ "missed", OUT_FIGURE, 2 },
};

static const struct {
	const char *name;
	enum { COUNT, RATE, TIME } how;
} kind_figures[] = {
	{ "calls", COUNT }, { "calls_per_s", RATE }, { "bytes", COUNT }, { "ns", TIME },
	{ "p50_ns", TIME }, { "p90_ns", TIME },	     { "p99_ns", TIME }, { "missed", COUNT },
};

static void add_figure(struct out_grid *grid, const struct result_figure *f, int how)
{
	char buf[32];

	if (!f || !f->known)
		out_grid_add(grid, "-");
	else if (how == COUNT)
		out_grid_add(grid, "%" PRIu64, f->n);
	else if (how == RATE)
		out_grid_add(grid, "%s", out_rate(f->x, buf, sizeof(buf)));
	else
		out_grid_add(grid, "%s", out_time((double)f->n, buf, sizeof(buf)));
}

/* A row for each kind that was called, in the order of the preset. */
static void print_kinds(FILE *to, const struct result *res)
{
	struct out_grid grid = { kind_cols, sizeof(kind_cols) / sizeof(*kind_cols), NULL, 0 };

	for (size_t i = 0; i < res->n_cuda; i++) {
		const char *dot = strchr(res->cuda[i].name, '.');
		int len = dot ? (int)(dot - res->cuda[i].name) : 0;
		char name[96];

		if (!dot || strcmp(dot, ".calls") != 0 || (res->cuda[i].known && !res->cuda[i].n))
			continue;
		out_grid_add(&grid, "%.*s", len, res->cuda[i].name);
		for (size_t k = 0; k < sizeof(kind_figures) / sizeof(*kind_figures); k++) {
			snprintf(name, sizeof(name), "%.*s.%s", len, res->cuda[i].name,
				 kind_figures[k].name);
			add_figure(&grid, figure(res, name), kind_figures[k].how);
		}
	}
	if (!grid.n_cells)
		return;
	out_grid_print(&grid, to);
}

/* ---- by kernel ---- */

enum { LAUNCHED_SHOWN = 20 };

static const struct out_col launched_cols[] = {
	{ "launches", OUT_FIGURE, 0 },
	{ "host time", OUT_FIGURE, 2 },
	{ "of", OUT_TEXT, 2 },
	{ "kernel", OUT_NAME, 2 },
};

static void print_launches(FILE *to, const struct result_launches *l)
{
	struct out_grid grid = { launched_cols, sizeof(launched_cols) / sizeof(*launched_cols),
				 NULL, 0 };
	char buf[32];

	for (size_t i = 0; i < l->n && i < LAUNCHED_SHOWN; i++) {
		const struct result_launched *row = &l->row[i];

		out_grid_add(&grid, "%" PRIu64, row->launches);
		out_grid_add(&grid, "%s", out_time((double)row->total_ns, buf, sizeof(buf)));
		out_grid_add(&grid, "%s", row->preset);
		out_grid_add(&grid, "%s", row->name ? row->name : "(without a known name)");
	}
	if (l->n)
		out_grid_print(&grid, to);
	if (l->n > LAUNCHED_SHOWN)
		fprintf(to, "  and %zu more names (--json has them)\n", l->n - LAUNCHED_SHOWN);
}

/* ---- the whole ---- */

/* Those that the run was not asked for are not shown: the JSON has their reason. */
static const struct {
	const char *name, *label, *ns;
} shown[] = {
	{ "api_calls", "API calls", NULL },	{ "launches", "launches", NULL },
	{ "allocations", "allocations", NULL }, { "allocated_bytes", "bytes allocated", NULL },
	{ "transfers", "transfers", NULL },	{ "transferred_bytes", "bytes transferred", NULL },
	{ "syncs", "waits", "sync_ns" },	{ "ioctls", "ioctls", "ioctl_ns" },
};

void out_cuda(FILE *to, const struct result *res)
{
	size_t n = 0;
	char buf[32];

	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
		const struct result_figure *f = figure(res, shown[i].name);
		const struct result_figure *ns = shown[i].ns ? figure(res, shown[i].ns) : NULL;

		if (!f || !f->known)
			continue;
		fprintf(to, "%s%s %" PRIu64, n++ ? ", " : "cuda: ", shown[i].label, f->n);
		if (ns && ns->known)
			fprintf(to, " of %s", out_time((double)ns->n, buf, sizeof(buf)));
	}
	if (n)
		fputc('\n', to);
	print_kinds(to, res);
	print_launches(to, &res->launches);
}
