/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_QUANTILE_H
#define SWEEP_QUANTILE_H

#include "histogram.h"
#include "record.h"

/*
 * What a delay changes of the quantiles of a response, whose windows have histograms. Pure.
 *
 * A quantile of an arm is that of its responses in all blocks together. A few responses of one
 * block have no p99; left out of all, a block shows what it adds. These are the jackknife's
 * pseudo-values,
 *
 *	Q_b = Q + (n - 1) (mean of Q without a block - Q without block b)
 *
 * whose mean is Q. They take the place of T in the cells of infer.h: contrasts are made within
 * blocks, with the same t intervals, and drift between blocks cancels.
 *
 * Of a bucket it is known how many responses it holds, and not where in it they are. Estimates put
 * them evenly; intervals allow for each place: they are wider by the bucket of SHAM and by that of
 * the dose. If both are the same bucket, or wider together than the change, there is no estimate of
 * the change.
 */
#define QUANTILE_BEYOND 10 /* responses of each arm beyond a quantile, at the least */

/*
 * The blocks of data whose histograms are known, with a quantile's pseudo-values as T: for infer.h,
 * in the place of data. Without blocks if there are too few responses. quantile_of_free() it.
 */
struct quantile_of {
	struct infer_data data;
	struct histogram_at *at; /* of each arm */
};
void quantile_of(const struct record *rec, const struct record_of *of,
		 const struct infer_data *data, double share, struct quantile_of *out);
void quantile_of_free(struct quantile_of *q);

/* Widens intervals of infer_kappa() and infer_delta() by what the buckets leave open. */
void quantile_widen_kappa(const struct quantile_of *q, struct sweep_estimate *kappa);
void quantile_widen_delta(const struct quantile_of *q, size_t arm, struct sweep_estimate *delta);

/* data: of the same windows, by record_data(). Fills target->quantile. */
void quantile_fill(const struct record *rec, const struct record_of *of,
		   const struct infer_data *data, struct sweep_target *target);

#endif
