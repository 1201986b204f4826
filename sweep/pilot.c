/* SPDX-License-Identifier: MIT */
#include "pilot.h"

#include <math.h>
#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

bool pilot_settled(const struct pilot_window *win, size_t n)
{
	double t[PILOT_SETTLE], sorted[PILOT_SETTLE], trend;

	if (n < PILOT_SETTLE)
		return false;
	for (size_t i = 0; i < PILOT_SETTLE; i++) {
		t[i] = sorted[i] = win[n - PILOT_SETTLE + i].t_ns;
		if (!isfinite(t[i]))
			return false;
	}
	trend = fabs(stat_theil_sen(t, PILOT_SETTLE)) * PILOT_SETTLE;
	return stat_trend_p(t, PILOT_SETTLE) > 0.05 ||
	       trend < 0.02 * stat_median(sorted, PILOT_SETTLE);
}

/*
 * A watched source counts its changes. Otherwise windows in which it did not change at all show the
 * period: with a period P above the window w a share w / P of them see a change.
 */
static double update_period(const struct pilot_window *win, size_t n, double time_ns)
{
	uint64_t changes = 0;
	size_t moved = 0;

	for (size_t i = 0; i < n; i++) {
		changes += win[i].changes;
		moved += win[i].items > 0;
	}
	if (changes)
		return time_ns / (double)changes;
	if (moved && moved < n)
		return time_ns / (double)moved;
	return NAN;
}

/* T of `span` windows from `from` on. */
static double pooled(const struct pilot_window *win, size_t from, size_t span)
{
	double items = 0, time_ns = 0;

	for (size_t i = from; i < from + span; i++) {
		items += win[i].items;
		time_ns += win[i].time_ns;
	}
	return items > 0 ? time_ns / items : NAN;
}

/*
 * Root mean square of (A - B - B + A) / 2 where nothing is different: the scatter of a block's
 * contrast.
 */
static double contrast_cv(const struct pilot_window *win, size_t n, size_t span, double t_ns)
{
	double sum = 0, m = 0;

	for (size_t at = 0; at + 4 * span <= n; at += span) {
		double c = pooled(win, at, span) - pooled(win, at + span, span) -
			   pooled(win, at + 2 * span, span) + pooled(win, at + 3 * span, span);

		if (isnan(c))
			continue;
		sum += c * c / 4;
		m++;
	}
	return m >= 8 ? sqrt(sum / m) / t_ns : NAN;
}

void pilot_study(const struct pilot_window *win, size_t n, struct pilot *out)
{
	double *t = must_calloc(n, sizeof(*t)), items = 0, time_ns = 0;
	size_t m = 0;

	*out = (struct pilot){ NAN, NAN, NAN, NAN, NAN, { NAN, NAN, NAN, NAN } };
	for (size_t i = 0; i < n; i++) {
		items += win[i].items;
		time_ns += win[i].time_ns;
		if (isfinite(win[i].t_ns))
			t[m++] = win[i].t_ns;
	}
	if (n && items > 0) {
		out->t_ns = time_ns / items;
		out->window_ns = time_ns / (double)n;
		out->period_ns = update_period(win, n, time_ns);
	}
	if (m >= 2) {
		out->cv = sqrt(stat_var(t, m)) / stat_mean(t, m);
		out->iact_ns = stat_iact(t, m) * out->window_ns;
	}
	for (int i = 0; i < PILOT_SPANS; i++)
		out->noise_cv[i] = contrast_cv(win, n, (size_t)1 << i, out->t_ns);
	free(t);
}

#define COARSE	    1.6 /* periods: fewer are for the largest dose alone */
#define GUARD_ITEMS 3	/* of a pipeline of unknown depth */

static uint64_t guard_for(const struct pilot *pilot, const struct sizing_cfg *cfg)
{
	double guard = fmax(25e6, 100 * pilot->t_ns), period = fmax(0, pilot->period_ns);

	if (cfg->guard_ns)
		return cfg->guard_ns;
	if (cfg->depth_items > 0)
		guard = 2 * cfg->depth_items * pilot->t_ns;
	else
		guard = fmin(guard,
			     fmax((double)cfg->time_ns / 400,
				  fmin(GUARD_ITEMS * pilot->t_ns, (double)cfg->time_ns / 100)));
	/* A window that is aligned begins at the first change after its guard. */
	return (uint64_t)fmax(guard, isnan(period) || cfg->aligned ? 0 : period);
}

/* The shortest window whose contrasts are nearly as informative, for their time, as the best's. */
static double telling(const struct pilot *pilot, double guard)
{
	double cost[PILOT_SPANS], best = INFINITY;

	for (int i = 0; i < PILOT_SPANS; i++) {
		double cv = pilot->noise_cv[i], window = ldexp(pilot->window_ns, i);

		cost[i] = isnan(cv) ? INFINITY : cv * cv * (window + guard);
		best = fmin(best, cost[i]);
	}
	for (int i = 0; i < PILOT_SPANS; i++)
		if (cost[i] <= 1.2 * best && isfinite(best))
			return ldexp(pilot->window_ns, i);
	return 0;
}

/* Windows never shorter than hard, if possible not shorter than soft. */
static void limits(const struct pilot *pilot, const struct sizing_cfg *cfg, double guard,
		   double *hard, double *soft)
{
	double period = isnan(pilot->period_ns) ? 0 : pilot->period_ns;

	*hard = fmax(fmax(5e6, (cfg->aligned ? 0.5 : 4) * period), fmax(5 * pilot->t_ns, guard));
	*soft = fmax(fmax(20e6, (cfg->aligned ? 20 : 30) * period),
		     fmax(100 * pilot->t_ns, 3 * guard));
	if (!cfg->shared)
		*soft = fmax(*soft, telling(pilot, guard + cfg->overhead_ns));
	*soft = fmax(*soft, *hard);
}

/* Where few blocks fit, gates must leave room for them: an interval is worth more than a verdict.
 */
static size_t gates_for(const struct sizing_cfg *cfg, size_t blocks)
{
	size_t few = blocks < PILOT_BLOCKS_MIN ? blocks / 3 : cfg->gates_min;
	size_t least = few < cfg->gates_min ? few : cfg->gates_min;

	if (!cfg->gate_windows)
		return 0;
	least = least ? least : 1;
	return blocks / 4 > least ? blocks / 4 : least;
}

static double windows(const struct sizing_cfg *cfg, size_t blocks)
{
	return (double)(blocks * cfg->block_windows + gates_for(cfg, blocks) * cfg->gate_windows);
}

double pilot_aligned_ns(const struct pilot *pilot, double guard_ns, double overhead_ns,
			double changed)
{
	double period = pilot->period_ns;

	return fmax(changed * guard_ns + overhead_ns,
		    (changed * (floor(guard_ns / period) + 1) + 0.5) * period);
}

/* Ends half a period before a change, so that jitter of the source does not make it the next. */
static double aligned_window(const struct pilot *pilot, double window, double hard)
{
	double period = pilot->period_ns;

	return fmax(hard, (floor(window / period + 0.5) - 0.5) * period);
}

void pilot_size(const struct pilot *pilot, const struct sizing_cfg *cfg, struct sizing *out)
{
	size_t least = cfg->blocks_min ? cfg->blocks_min : PILOT_BLOCKS_MIN;
	size_t blocks = cfg->blocks_max ? cfg->blocks_max : PILOT_BLOCKS;
	bool aligned = cfg->aligned && pilot->period_ns > 0;
	double guard, hard, soft, window;

	*out = (struct sizing){ .guard_ns = guard_for(pilot, cfg) };
	guard = (double)out->guard_ns;
	limits(pilot, cfg, guard, &hard, &soft);
	/* A change of arm in every window is assumed, and half a period of dither. */
	if (!isnan(pilot->period_ns) && !cfg->aligned)
		guard += pilot->period_ns / 2;
	guard = aligned ? pilot_aligned_ns(pilot, guard, cfg->overhead_ns,
					   1 - 1.5 / (double)cfg->block_windows) :
			  guard + cfg->overhead_ns;
	out->needed_ns = windows(cfg, least) * (hard + guard);
	for (;; blocks--) {
		window = (double)cfg->budget_ns / windows(cfg, blocks) - guard;
		if (window >= soft || blocks <= least)
			break;
	}
	out->enough = window >= hard;
	out->coarse = aligned && window < COARSE * pilot->period_ns;
	window = fmax(window, hard);
	out->window_ns = (uint64_t)(aligned ? aligned_window(pilot, window, hard) : window);
	while (blocks > 1 && windows(cfg, blocks) * (hard + guard) > (double)cfg->budget_ns)
		blocks--;
	/* What the rounding to whole periods leaves. */
	while (aligned && !cfg->blocks_max && blocks < PILOT_BLOCKS &&
	       windows(cfg, blocks + 1) * ((double)out->window_ns + guard) <=
		       (double)cfg->budget_ns)
		blocks++;
	out->blocks = blocks;
	out->gates = gates_for(cfg, blocks);
}
