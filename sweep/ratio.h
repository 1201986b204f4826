/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_RATIO_H
#define SWEEP_RATIO_H

#include <stddef.h>

/* An estimate with its interval; NAN: unknown. */
struct ratio {
	double est, lo, hi;
};

extern const struct ratio ratio_unknown;

/*
 * The sum of the parts over the sum of the items, of n blocks of time, with the interval of
 * two-sided confidence `conf`: the scatter of the blocks about the ratio (Student's t), widened
 * where blocks that follow one another are alike. Without an interval below three blocks; unknown
 * without an item. Pure.
 */
struct ratio ratio_of(const double *part, const double *items, size_t n, double conf);

#endif
