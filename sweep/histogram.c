/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <stdlib.h>
#include "src/base/must.h"

/* Bounds as near as that, by the bucket's width, are the same: they are rounded to ns, and the
 * clock is measured again in the course of a session. */
#define SAME 0.02

/* The cell of a row; false: it is in none. */
static bool cell_of(const struct record *rec, size_t row, const struct record_of *of,
		    const struct infer_data *data, size_t *cell)
{
	const struct record_row *r = &rec->row[row];
	int first = COLUMN_DOSE + (int)of->first, arm = 0;

	if (r->column != COLUMN_SHAM) {
		arm = r->column - first + 1;
		if (arm < 1 || (size_t)arm >= data->n_arms)
			return false;
	}
	if (r->win.block < 0 || !record_has(rec, row, of))
		return false;
	for (size_t b = 0; b < data->n_blocks; b++)
		if (data->number[b] == r->win.block) {
			*cell = b * data->n_arms + (size_t)arm;
			return true;
		}
	return false;
}

static int by_lo(const void *a, const void *b)
{
	const struct sweep_bucket *x = a, *y = b;

	return (x->lo_ns > y->lo_ns) - (x->lo_ns < y->lo_ns);
}

static bool same(double a, double b, double width)
{
	return fabs(a - b) <= (isfinite(width) ? SAME * width : 0) + 0.6;
}

/* All buckets of all rows, each once. */
static void make_grid(struct sweep_bucket *all, size_t n, struct histogram *h)
{
	if (n)
		qsort(all, n, sizeof(*all), by_lo);
	h->lo = must_calloc(n + 1, sizeof(*h->lo));
	h->hi = must_calloc(n + 1, sizeof(*h->hi));
	for (size_t i = 0; i < n; i++) {
		if (h->n && same(h->lo[h->n - 1], all[i].lo_ns, all[i].hi_ns - all[i].lo_ns)) {
			h->hi[h->n - 1] = fmax(h->hi[h->n - 1], all[i].hi_ns);
			continue;
		}
		h->lo[h->n] = all[i].lo_ns;
		h->hi[h->n++] = all[i].hi_ns;
	}
}

/* The last bucket that begins at or, but for rounding, before. */
static size_t bucket_at(const struct histogram *h, const struct sweep_bucket *b)
{
	size_t lo = 0, hi = h->n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (h->lo[mid] <= b->lo_ns || same(h->lo[mid], b->lo_ns, b->hi_ns - b->lo_ns))
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

void histogram_make(const struct record *rec, const struct record_of *of,
		    const struct infer_data *data, struct histogram *out)
{
	struct sweep_bucket *all = NULL;
	size_t n = 0, cell;

	*out = (struct histogram){ .n_cells = data->n_blocks * data->n_arms };
	out->unknown = must_calloc(out->n_cells + 1, sizeof(*out->unknown));
	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (!cell_of(rec, i, of, data, &cell))
			continue;
		out->unknown[cell] |= !row->n_buckets && row->win.response_count > 0;
		all = must_realloc(all, (n + row->n_buckets + 1) * sizeof(*all));
		for (size_t k = 0; k < row->n_buckets; k++)
			all[n++] = row->bucket[k];
	}
	make_grid(all, n, out);
	free(all);
	out->count = must_calloc(out->n_cells * out->n + 1, sizeof(*out->count));
	for (size_t i = 0; i < rec->n && out->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (!cell_of(rec, i, of, data, &cell))
			continue;
		for (size_t k = 0; k < row->n_buckets; k++)
			out->count[cell * out->n + bucket_at(out, &row->bucket[k])] +=
				row->bucket[k].n;
	}
}

void histogram_free(struct histogram *h)
{
	free(h->lo);
	free(h->hi);
	free(h->count);
	free(h->unknown);
	*h = (struct histogram){ 0 };
}

struct histogram_at histogram_quantile(const struct histogram *h, const double *count, double share)
{
	double all = 0, want, below = 0;

	for (size_t i = 0; i < h->n; i++)
		all += count[i];
	want = share * all;
	for (size_t i = 0; i < h->n && all > 0; i++) {
		if (!(count[i] > 0) || below + count[i] < want) {
			below += count[i];
			continue;
		}
		if (isinf(h->hi[i]))
			return (struct histogram_at){ INFINITY, h->lo[i], INFINITY };
		return (struct histogram_at){ h->lo[i] + (h->hi[i] - h->lo[i]) * (want - below) /
								 count[i],
					      h->lo[i], h->hi[i] };
	}
	return (struct histogram_at){ NAN, NAN, NAN };
}
