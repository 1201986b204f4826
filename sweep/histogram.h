/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_HISTOGRAM_H
#define SWEEP_HISTOGRAM_H

#include "record.h"

/*
 * The histograms of windows, on one grid of buckets, as sums over the cells of record_data(): the
 * same blocks in the same order. Windows may name other buckets (only those that hold something).
 */
struct histogram {
	double *lo, *hi; /* of each bucket, rising, ns; the last hi may be INFINITY */
	size_t n, n_cells;
	double *count; /* [cell * n + bucket] */
	bool *unknown; /* of each cell: a window of it had none */
};

void histogram_make(const struct record *rec, const struct record_of *of,
		    const struct infer_data *data, struct histogram *out);
void histogram_free(struct histogram *h);

/* Where in the grid a quantile of these counts lies. */
struct histogram_at {
	double est;    /* with the bucket's responses spread evenly; INFINITY: beyond all bounds */
	double lo, hi; /* of the bucket */
};
/* count: n of them; a share between 0 and 1. NAN where there are no responses. */
struct histogram_at histogram_quantile(const struct histogram *h, const double *count,
				       double share);

#endif
