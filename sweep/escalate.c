/* SPDX-License-Identifier: MIT */
#include "escalate.h"

#include <math.h>
#include "stat.h"

#define SMALLEST 16 /* doses of so many sizes, smallest to largest, tell a slack from a slope */

bool escalate_open(struct escalate *esc, double t0_ns, double bound, double least_ns)
{
	*esc = (struct escalate){
		.t0_ns = t0_ns, .bound = bound, .least_ns = least_ns, .safe_ns = INFINITY
	};
	esc->over = !(t0_ns > 0) || !(least_ns <= bound * t0_ns);
	return !esc->over;
}

double escalate_every(double least, double most)
{
	return ldexp(1, (int)fmax(0, ceil(log2(SMALLEST * least / most))));
}

static double top(const struct escalate *esc)
{
	return esc->bound * esc->t0_ns;
}

void escalate_safe(struct escalate *esc, double x_ns)
{
	esc->safe_ns = x_ns;
}

/* The dose at which T would have grown to the bound, by the slope between the last two probes. */
static double allowed(const struct escalate *esc)
{
	size_t i = esc->step - 1;
	double x0 = i ? esc->x[i - 1] : 0, d0 = i ? esc->delta[i - 1] : 0, slope, left;

	slope = (esc->delta[i] - d0) / (esc->x[i] - x0);
	left = esc->bound * esc->t0_ns - esc->delta[i];
	if (!(slope > 0))
		return top(esc);
	return fmin(top(esc), fmax(esc->least_ns, esc->x[i] + left / slope));
}

double escalate_next(const struct escalate *esc)
{
	double x;

	if (esc->over || esc->step == ESCALATE_STEPS)
		return 0;
	x = fmax(ESCALATE_FIRST * esc->t0_ns, esc->least_ns);
	x = fmin(ldexp(x, (int)esc->step), top(esc));
	if (!esc->step || !esc->seen[esc->step - 1] || x <= allowed(esc))
		return x;
	x = allowed(esc); /* no dose that would slow it by more than the bound */
	return x > 1.2 * esc->x[esc->step - 1] ? x : 0;
}

void escalate_tell(struct escalate *esc, double x_ns, const double *delta_ns, size_t n)
{
	double asked = escalate_next(esc), mean = stat_mean(delta_ns, n), se;
	size_t i = esc->step++;

	for (size_t b = 0; b < n; b++)
		esc->ss += (delta_ns[b] - mean) * (delta_ns[b] - mean);
	esc->df += (double)(n - 1);
	esc->x[i] = x_ns > 0 ? x_ns : asked;
	esc->delta[i] = mean;
	if (esc->df > 0) {
		se = sqrt(esc->ss / esc->df / (double)n);
		esc->seen[i] = mean > stat_t_quantile(0.99, esc->df) * se;
	}
	if (i > 0 && esc->seen[i] && esc->seen[i - 1])
		esc->over = true;
	if (asked >= top(esc) * (1 - 1e-9) || mean >= esc->bound * esc->t0_ns)
		esc->over = true;
}

void escalate_limit(struct escalate *esc, double x_ns)
{
	double bound = fmax(x_ns, esc->least_ns) / esc->t0_ns;

	if (bound >= esc->bound)
		return;
	esc->bound = bound;
	esc->over |= esc->step && esc->x[esc->step - 1] >= top(esc);
}

/* The first dose of the last unbroken row of responses; step: none. */
static size_t first_seen(const struct escalate *esc)
{
	size_t i = esc->step;

	while (i > 0 && esc->seen[i - 1])
		i--;
	return i;
}

/*
 * A dose under the slack, if there is one, and not far under it: there hiding is clearest. It is
 * where the line through the last two responses starts, less a margin; d / 2 where that is near 0.
 */
static double below(const struct escalate *esc, size_t first)
{
	size_t i = esc->step - 1;
	double d = esc->x[first], start;

	if (i <= first)
		return d / 2;
	start = esc->x[i] -
		esc->delta[i] * (esc->x[i] - esc->x[i - 1]) / (esc->delta[i] - esc->delta[i - 1]);
	return start > 0.3 * d ? fmin(0.8 * start, 0.9 * d) : d / 2;
}

/* That and half of it. */
static size_t no_more(const struct escalate *esc, double hi, size_t most, double *x_ns)
{
	size_t n = most > 1 && hi / 2 >= esc->least_ns ? 2 : 1;

	x_ns[0] = hi / 2;
	x_ns[n - 1] = hi;
	return n;
}

size_t escalate_doses(const struct escalate *esc, size_t most, double *x_ns)
{
	size_t first = first_seen(esc), n;
	double lo, hi, d;

	if (!esc->step || !most)
		return 0;
	if (fmax(esc->safe_ns, esc->least_ns) < top(esc))
		return no_more(esc, fmax(esc->safe_ns, esc->least_ns), most, x_ns);
	if (first == esc->step || most < 3) {
		hi = first == esc->step ? top(esc) : fmin(4 * esc->x[first], allowed(esc));
		return no_more(esc, hi, most, x_ns);
	}
	n = most < ESCALATE_DOSES ? most : ESCALATE_DOSES;
	d = esc->x[first];
	lo = fmax(below(esc, first), esc->least_ns);
	hi = fmax(fmin(4 * d, allowed(esc)), d);
	x_ns[0] = lo;
	if (hi >= 4 * d * (1 - 1e-9)) { /* d, 2 d, 4 d; with three doses in all d, 4 d */
		x_ns[1] = d;
		x_ns[n - 2] = n > 3 ? 2 * d : d;
		x_ns[n - 1] = 4 * d;
		return n;
	}
	/* Little space above: a slack may lie anywhere above d / 2, so spread them evenly. */
	for (size_t i = 1; i < n; i++)
		x_ns[i] = lo + (hi - lo) * (double)i / (double)(n - 1);
	return n;
}
