/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_STAT_H
#define SWEEP_STAT_H

#include <stddef.h>

/*
 * Distributions and small tools of statistics; pure. A dozen functions here replace a library of
 * several megabytes: Student's t and F by the incomplete beta function (continued fraction of
 * Lentz), quantiles by bisection of the CDF. Checked against SciPy in test/unit/test-sweep-stat.c.
 * Arguments out of range give NAN.
 */
double stat_beta_inc(double a, double b, double x); /* regularised I_x(a, b) */
double stat_t_cdf(double t, double df);
double stat_t_quantile(double p, double df); /* p in (0, 1) */
double stat_t_p2(double t, double df);	     /* two-sided p of |t| */
double stat_f_quantile(double p, double df1, double df2);
double stat_normal_cdf(double z);
double stat_normal_quantile(double p);

double stat_mean(const double *v, size_t n); /* NAN when n is 0 */
double stat_var(const double *v, size_t n);  /* divided by n - 1; NAN when n < 2 */
void stat_sort(double *v, size_t n);
/* Of sorted values, interpolated (Hyndman and Fan's type 7). */
double stat_quantile_sorted(const double *v, size_t n, double p);
double stat_median(double *v, size_t n); /* sorts v */

/*
 * Hodges-Lehmann estimate: the median of the n(n+1)/2 means of pairs (Walsh averages), and the
 * Wilcoxon signed-rank interval of two-sided confidence `conf` (exact below 60 values, then by the
 * normal approximation); +-INFINITY when n is too small for one (n < 6 at 95 %).
 */
double stat_hodges_lehmann(const double *v, size_t n, double conf, double *lo, double *hi);

/* Mann-Kendall test for a trend: two-sided p by the normal approximation with ties; NAN below 4. */
double stat_trend_p(const double *v, size_t n);
/* Theil-Sen slope: median of pairwise slopes, per step of the index. */
double stat_theil_sen(const double *v, size_t n);

/* Integrated autocorrelation time in samples, 1 + 2 * sum of correlations up to Geyer's first
 * non-positive pair; at least 1. */
double stat_iact(const double *v, size_t n);

/* Holm (1979): adjusts p in place; NAN is left alone and not counted. */
void stat_holm(double *p, size_t n);

#endif
