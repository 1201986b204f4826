/* SPDX-License-Identifier: MIT */
#include "ratio.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"
#include "stat.h"

const struct ratio ratio_unknown = { NAN, NAN, NAN };

struct ratio ratio_of(const double *part, const double *items, size_t n, double conf)
{
	double parts = 0, all = 0, squares = 0, half, *rest;
	struct ratio r = ratio_unknown;

	for (size_t i = 0; i < n; i++) {
		parts += part[i];
		all += items[i];
	}
	if (!(all > 0) || !isfinite(parts))
		return r;
	r.est = parts / all;
	if (n < 3)
		return r;
	rest = must_calloc(n, sizeof(*rest));
	for (size_t i = 0; i < n; i++) {
		rest[i] = part[i] - r.est * items[i];
		squares += rest[i] * rest[i];
	}
	half = stat_t_quantile((1 + conf) / 2, (double)n - 1) *
	       sqrt((double)n / ((double)n - 1) * squares * stat_iact(rest, n)) / all;
	free(rest);
	r.lo = r.est - half;
	r.hi = r.est + half;
	return r;
}
