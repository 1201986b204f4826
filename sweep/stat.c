/* SPDX-License-Identifier: MIT */
#include "stat.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"

/* The continued fraction of I_x(a, b) (Abramowitz and Stegun 26.5.8) by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int m = 1; m < 10000; m++) {
		double k[2], delta = 0;

		k[0] = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		k[1] = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		for (int i = 0; i < 2; i++) {
			d = 1 + k[i] * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + k[i] / c;
			c = fabs(c) < tiny ? tiny : c;
			delta = c * d;
			h *= delta;
		}
		if (fabs(delta - 1) < 1e-15)
			break;
	}
	return h;
}

double stat_beta_inc(double a, double b, double x)
{
	double front;

	if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1))
		return NAN;
	if (x == 0 || x == 1)
		return x;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stat_t_p2(double t, double df)
{
	if (isnan(t) || !(df > 0))
		return NAN;
	if (isinf(t))
		return 0;
	return stat_beta_inc(df / 2, 0.5, df / (df + t * t));
}

double stat_t_cdf(double t, double df)
{
	double tail = stat_t_p2(t, df) / 2;

	return t < 0 ? tail : 1 - tail;
}

static double f_cdf(double f, double df1, double df2)
{
	return stat_beta_inc(df1 / 2, df2 / 2, df1 * f / (df1 * f + df2));
}

static double t_density(double t, double df)
{
	return exp(lgamma((df + 1) / 2) - lgamma(df / 2) - (df + 1) / 2 * log1p(t * t / df)) /
	       sqrt(df * M_PI);
}

/* Newton's steps on the logarithm of the tail, halved where one leaves the bracket. */
static double t_beyond(double tail, double df, double lo, double hi)
{
	double t = (lo + hi) / 2, next;

	for (int i = 0; i < 80; i++, t = next) {
		double is = stat_t_p2(t, df) / 2;

		if (is > tail)
			lo = t;
		else
			hi = t;
		next = t + is * log(is / tail) / t_density(t, df);
		if (!(next > lo && next < hi))
			next = (lo + hi) / 2;
		if (fabs(next - t) <= 1e-14 * t)
			break;
	}
	return t;
}

double stat_t_quantile(double p, double df)
{
	double lo = 0, hi = 1, tail = p < 0.5 ? p : 1 - p, t;

	if (!(p > 0) || !(p < 1) || !(df > 0))
		return NAN;
	for (; stat_t_p2(hi, df) / 2 > tail && hi < 1e300; hi *= 2)
		lo = hi;
	t = t_beyond(tail, df, lo, hi);
	return p < 0.5 ? -t : t;
}

double stat_f_quantile(double p, double df1, double df2)
{
	double lo = 0, hi = 1;

	if (!(p > 0) || !(p < 1) || !(df1 > 0) || !(df2 > 0))
		return NAN;
	if (df1 == 1) { /* the square of Student's t, whose quantile takes a tenth of the steps */
		double t = stat_t_quantile((1 + p) / 2, df2);

		return t * t;
	}
	while (f_cdf(hi, df1, df2) < p && hi < 1e300)
		hi *= 2;
	for (int i = 0; i < 80; i++) {
		double mid = (lo + hi) / 2;

		if (f_cdf(mid, df1, df2) < p)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

double stat_normal_cdf(double z)
{
	return erfc(-z / M_SQRT2) / 2;
}

double stat_normal_quantile(double p)
{
	double lo = -40, hi = 40;

	if (!(p > 0) || !(p < 1))
		return NAN;
	for (int i = 0; i < 80; i++) {
		double mid = (lo + hi) / 2;

		if (stat_normal_cdf(mid) < p)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

double stat_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / (double)n : NAN;
}

double stat_var(const double *v, size_t n)
{
	double mean = stat_mean(v, n), sum = 0;

	if (n < 2)
		return NAN;
	for (size_t i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return sum / (double)(n - 1);
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void stat_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), ascending);
}

double stat_quantile_sorted(const double *v, size_t n, double p)
{
	double at;
	size_t i;

	if (!n || !(p >= 0) || !(p <= 1))
		return NAN;
	at = p * (double)(n - 1);
	i = (size_t)at;
	if (i + 1 >= n)
		return v[n - 1];
	return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

double stat_median(double *v, size_t n)
{
	stat_sort(v, n);
	return stat_quantile_sorted(v, n, 0.5);
}

double stat_iact(const double *v, size_t n)
{
	double mean = stat_mean(v, n), c0 = 0, tau = 1;

	for (size_t i = 0; i < n; i++)
		c0 += (v[i] - mean) * (v[i] - mean);
	if (n < 4 || !(c0 > 0))
		return 1;
	for (size_t lag = 1; lag + 1 < n / 2; lag += 2) {
		double pair = 0;

		for (size_t k = lag; k < lag + 2; k++)
			for (size_t i = 0; i + k < n; i++)
				pair += (v[i] - mean) * (v[i + k] - mean) / c0;
		if (pair <= 0)
			break;
		tau += 2 * pair;
	}
	return tau > 1 ? tau : 1;
}

void stat_holm(double *p, size_t n)
{
	size_t *at = must_calloc(n, sizeof(*at)), m = 0;
	double worst = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(p[i]))
			at[m++] = i;
	for (size_t i = 1; i < m; i++) /* insertion: few targets, and stable */
		for (size_t j = i; j > 0 && p[at[j]] < p[at[j - 1]]; j--) {
			size_t t = at[j];

			at[j] = at[j - 1];
			at[j - 1] = t;
		}
	for (size_t i = 0; i < m; i++) {
		double adjusted = p[at[i]] * (double)(m - i);

		worst = fmax(worst, fmin(1, adjusted));
		p[at[i]] = worst;
	}
	free(at);
}
