/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <inttypes.h>
#include "grid.h"
#include "out.h"
#include "src/base/must.h"

enum { KERNELS_SHOWN = 20, BUSY_SHOWN = 16 };

void out_device_fill(struct result_device *to, const struct devices *from)
{
	to->kernels = from->kernels.n;
	to->kernel_ns = from->kernels.ns;
	to->copies = from->copies.n;
	to->copy_ns = from->copies.ns;
	to->copied_bytes = from->copied_bytes;
	to->memsets = from->memsets.n;
	to->memset_ns = from->memsets.ns;
	to->left_out = from->kernels_left;
	to->n_rows = from->n_rows;
	to->row = must_calloc(from->n_rows + 1, sizeof(*to->row));
	for (size_t i = 0; i < from->n_rows; i++)
		to->row[i] = (struct result_device_kernel){ must_strdup(from->row[i].name),
							    from->row[i].n, from->row[i].total_ns,
							    from->row[i].min_ns,
							    from->row[i].max_ns };
	to->n_busy = from->n_busy;
	to->busy = must_calloc(from->n_busy + 1, sizeof(*to->busy));
	for (size_t i = 0; i < from->n_busy; i++)
		to->busy[i] = (struct result_busy){ from->busy[i].pid, from->busy[i].device,
						    !from->busy[i].late, from->busy[i].busy_ns };
}

static const struct out_col cols[] = {
	{ "on the device", OUT_FIGURE, 0 }, { "time", OUT_FIGURE, 2 }, { "mean", OUT_FIGURE, 1 },
	{ "min", OUT_FIGURE, 1 },	    { "max", OUT_FIGURE, 1 },  { "kernel", OUT_NAME, 2 },
};

static void add_time(struct out_grid *grid, double ns)
{
	char buf[32];

	out_grid_add(grid, "%s", out_time(ns, buf, sizeof(buf)));
}

static void print_rows(FILE *to, const struct result_device *d)
{
	struct out_grid grid = { cols, sizeof(cols) / sizeof(*cols), NULL, 0 };

	for (size_t i = 0; i < d->n_rows && i < KERNELS_SHOWN; i++) {
		const struct result_device_kernel *row = &d->row[i];

		out_grid_add(&grid, "%" PRIu64, row->n);
		add_time(&grid, (double)row->total_ns);
		add_time(&grid, (double)row->total_ns / (double)row->n);
		add_time(&grid, (double)row->min_ns);
		add_time(&grid, (double)row->max_ns);
		out_grid_add(&grid, "%s", row->name);
	}
	if (d->n_rows)
		out_grid_print(&grid, to);
	if (d->n_rows > KERNELS_SHOWN)
		fprintf(to, "  and %zu more kernels (--json has them)\n",
			d->n_rows - KERNELS_SHOWN);
	if (d->left_out)
		fprintf(to, "  and %" PRIu64 " runs of further kernels\n", d->left_out);
}

static void print_busy(FILE *to, const struct result_device *d)
{
	char buf[32];

	for (size_t i = 0; i < d->n_busy && i < BUSY_SHOWN; i++)
		fprintf(to, "device %" PRIu64 " of process %" PRId32 ": busy %s\n",
			d->busy[i].device, d->busy[i].pid,
			d->busy[i].known ?
				out_time((double)d->busy[i].busy_ns, buf, sizeof(buf)) :
				"for a time that is not known: its records came out of order");
}

void out_device(FILE *to, const struct result_device *d)
{
	char kernels[32], copies[32], memsets[32], late[32];

	if (!d->asked)
		return;
	if (!d->known) {
		fprintf(to, "device times: not known: %s\n",
			d->reason ? d->reason : "not measured");
		return;
	}
	fprintf(to,
		"device times: kernels %" PRIu64 " of %s, copies %" PRIu64 " of %s (%" PRIu64
		" bytes), memsets %" PRIu64 " of %s",
		d->kernels, out_time((double)d->kernel_ns, kernels, sizeof(kernels)), d->copies,
		out_time((double)d->copy_ns, copies, sizeof(copies)), d->copied_bytes, d->memsets,
		out_time((double)d->memset_ns, memsets, sizeof(memsets)));
	if (d->counted) /* not of a report */
		fprintf(to, "; recorded from %s on",
			out_time((double)d->late_ns, late, sizeof(late)));
	fputc('\n', to);
	print_busy(to, d);
	print_rows(to, d);
}
