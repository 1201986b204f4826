// SPDX-License-Identifier: MIT
#include "pilot.h"

#include <math.h>
#include <stdlib.h>
#include "must.h"
#include "stat.h"

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

/* A source that is watched says how often it changes; else windows in which it did not change at
 * all give it away: with a period P above the window w a share w / P of them see a change. */
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

void pilot_study(const struct pilot_window *win, size_t n, struct pilot *out)
{
	double *t = must_calloc(n, sizeof(*t)), items = 0, time_ns = 0;
	size_t m = 0;

	*out = (struct pilot){ NAN, NAN, NAN, NAN, NAN };
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
	free(t);
}

uint64_t pilot_guard(const struct pilot *pilot, uint64_t asked_ns, double depth_items)
{
	double guard = fmax(5e6, 20 * pilot->t_ns);

	if (asked_ns)
		return asked_ns;
	if (!isnan(pilot->period_ns))
		guard = fmax(guard, pilot->period_ns);
	return (uint64_t)fmax(guard, 2 * depth_items * pilot->t_ns);
}

/* Windows never shorter than hard, if possible not shorter than soft. */
static void limits(const struct pilot *pilot, bool aligned, double guard, double *hard,
		   double *soft)
{
	double period = isnan(pilot->period_ns) ? 0 : pilot->period_ns;

	*hard = fmax(fmax(5e6, 4 * period), fmax(5 * pilot->t_ns, guard));
	*soft = fmax(fmax(20e6, (aligned ? 20 : 30) * period), fmax(100 * pilot->t_ns, 3 * guard));
	if (isfinite(pilot->iact_ns))
		*soft = fmax(*soft, 2 * pilot->iact_ns);
	*soft = fmax(*soft, *hard);
}

static size_t gates_for(const struct sizing_cfg *cfg, size_t blocks)
{
	if (!cfg->gate_windows)
		return 0;
	return blocks / 4 > 4 ? blocks / 4 : 4;
}

static double windows(const struct sizing_cfg *cfg, size_t blocks)
{
	return (double)(blocks * cfg->block_windows + gates_for(cfg, blocks) * cfg->gate_windows);
}

void pilot_size(const struct pilot *pilot, const struct sizing_cfg *cfg, struct sizing *out)
{
	size_t least = cfg->blocks_min ? cfg->blocks_min : PILOT_BLOCKS_MIN;
	size_t blocks = cfg->blocks_max ? cfg->blocks_max : PILOT_BLOCKS;
	double guard, hard, soft, window;

	*out = (struct sizing){ .guard_ns = pilot_guard(pilot, cfg->guard_ns, cfg->depth_items) };
	guard = (double)out->guard_ns;
	limits(pilot, cfg->aligned, guard, &hard, &soft);
	/* A change of arm in every window is assumed, and half a period of dither. */
	if (!isnan(pilot->period_ns))
		guard += pilot->period_ns / 2;
	out->needed_ns = windows(cfg, least) * (hard + guard);
	for (;; blocks--) {
		window = (double)cfg->budget_ns / windows(cfg, blocks) - guard;
		if (window >= soft || blocks <= least)
			break;
	}
	out->enough = window >= hard;
	out->window_ns = (uint64_t)fmax(window, hard);
	while (blocks > 1 && windows(cfg, blocks) * (hard + guard) > (double)cfg->budget_ns)
		blocks--;
	out->blocks = blocks;
	out->gates = gates_for(cfg, blocks);
}
