/* SPDX-License-Identifier: MIT */
#include "stat.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"

#define EXACT_RANKS 60

/* Of all 2^n sign patterns: the largest k with P(W <= k - 1) <= tail; the kth smallest and the
 * kth largest Walsh average bound the interval. 0: even the smallest value is too likely. */
static size_t signed_rank_exact(size_t n, double tail)
{
	size_t max = n * (n + 1) / 2, k;
	double *ways = must_calloc(max + 1, sizeof(*ways)), sum = 0;

	ways[0] = pow(0.5, (double)n); /* probabilities: counts would not fit */
	for (size_t rank = 1; rank <= n; rank++)
		for (size_t w = max + 1; w-- > rank;)
			ways[w] += ways[w - rank];
	for (k = 0; k <= max; k++) {
		sum += ways[k];
		if (sum > tail)
			break;
	}
	free(ways);
	return k;
}

static size_t signed_rank(size_t n, double tail)
{
	double m = (double)n, mean = m * (m + 1) / 4, sd = sqrt(m * (m + 1) * (2 * m + 1) / 24);
	double k;

	if (n < EXACT_RANKS)
		return signed_rank_exact(n, tail);
	k = mean + stat_normal_quantile(tail) * sd;
	return k > 0 ? (size_t)k : 0;
}

double stat_hodges_lehmann(const double *v, size_t n, double conf, double *lo, double *hi)
{
	size_t m = n * (n + 1) / 2, at = 0, k;
	double *walsh, median;

	*lo = -INFINITY;
	*hi = INFINITY;
	if (!n)
		return NAN;
	walsh = must_calloc(m, sizeof(*walsh));
	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++)
			walsh[at++] = (v[i] + v[j]) / 2;
	median = stat_median(walsh, m); /* sorts */
	k = signed_rank(n, (1 - conf) / 2);
	if (k > 0) {
		*lo = walsh[k - 1];
		*hi = walsh[m - k];
	}
	free(walsh);
	return median;
}

static int sign(double x)
{
	return (x > 0) - (x < 0);
}

double stat_trend_p(const double *v, size_t n)
{
	double m = (double)n, var = m * (m - 1) * (2 * m + 5), z;
	long s = 0;

	if (n < 4)
		return NAN;
	for (size_t i = 0; i < n; i++) {
		size_t ties = 0, before = 0;

		for (size_t j = 0; j < n; j++) {
			ties += v[j] == v[i];
			before += j < i && v[j] == v[i];
			if (j > i)
				s += sign(v[j] - v[i]);
		}
		if (!before) {
			double t = (double)ties;

			var -= t * (t - 1) * (2 * t + 5);
		}
	}
	if (!(var > 0))
		return 1; /* all equal */
	z = (double)(s - sign((double)s)) / sqrt(var / 18);
	return 2 * stat_normal_cdf(-fabs(z));
}

double stat_theil_sen(const double *v, size_t n)
{
	size_t m = n * (n - 1) / 2, at = 0;
	double *slope, median;

	if (n < 2)
		return NAN;
	slope = must_calloc(m, sizeof(*slope));
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			slope[at++] = (v[j] - v[i]) / (double)(j - i);
	median = stat_median(slope, m);
	free(slope);
	return median;
}
