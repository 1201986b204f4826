/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_PILOT_H
#define SWEEP_PILOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "result.h"

/*
 * Before the blocks: whether the program has settled, and how long a window must be.
 *
 * A pilot is a row of equally long windows without pauses, in SHAM. Unknown is NAN.
 */
struct pilot_window {
	double t_ns; /* per item; NAN: no items */
	double items;
	double time_ns;
	uint64_t changes;	/* of the source; 0: not watched */
	double c[SWEEP_ADJUST]; /* covariates, of adjust_pilot() */
};

/*
 * Settled: by Mann-Kendall no trend at 5 % over the last PILOT_SETTLE windows, or a trend
 * (Theil-Sen) that over all of them is below 2 % of T.
 */
#define PILOT_SETTLE 12
bool pilot_settled(const struct pilot_window *win, size_t n);

#define PILOT_SPANS 4
struct pilot {
	double t_ns;	  /* per item */
	double iact_ns;	  /* integrated autocorrelation time of T */
	double period_ns; /* of the source's updates; NAN: not seen */
	double cv;	  /* spread of T from window to window, as a share */
	double window_ns;
	double noise_cv[PILOT_SPANS]; /* spread of A-B-B-A contrasts of windows of 1, 2, 4, 8 of
				       * the pilot's, as a share; NAN: too few */
};
void pilot_study(const struct pilot_window *win, size_t n, struct pilot *out);

/*
 * Window, guard and number of blocks for a budget. As many blocks as fit with windows that hold
 *
 * - the length at which the pilot's own A-B-B-A contrasts are most informative for the time they
 *   take (noise and autocorrelation: short windows cancel slow noise, long ones waste less on
 *   guards),
 * - 20 periods of the source (30 where windows are not aligned with it), 100 items, 3 guards, 20
 *   ms;
 *
 * if these are fewer than 8, shorter windows, down to 4 periods (one of aligned windows), 5 items,
 * 1 guard, 5 ms. There are at most PILOT_BLOCKS: beyond them the windows grow instead.
 *
 * Guard: the time that the pipeline needs to run dry and fill again. Two depths where the depth is
 * known; else 100 items, 25 ms at least, but no more than a 400th of the budget, or three items if
 * a 100th of it allows them (long items in a pipeline of three stages); and one period, unless
 * windows are aligned: those begin at the first change after the guard.
 */
#define PILOT_BLOCKS	 40
#define PILOT_BLOCKS_MIN 8

struct sizing {
	uint64_t window_ns, guard_ns;
	size_t blocks, gates; /* gates: A/A and OFF blocks, one to four of the others; gates_min at
				 least where there are 8 of the others, else one to three */
	bool enough;	      /* 8 blocks or more */
	bool coarse;	      /* aligned windows of so few periods that small doses are not told
				 from the jitter of their ends */
	double needed_ns;     /* for 8 blocks of the shortest windows */
};
struct sizing_cfg {
	uint64_t budget_ns;
	uint64_t time_ns;  /* of the whole sweep */
	uint64_t guard_ns; /* 0: chosen */
	double depth_items;
	bool aligned;
	size_t block_windows, gate_windows;
	double overhead_ns; /* of a window, beyond itself and its guard */
	size_t gates_min;
	size_t blocks_min, blocks_max; /* 0: as above */
	bool shared; /* blocks are long: many short windows, whatever the pilot's contrasts of a few
		      * windows say */
};
/*
 * What an aligned window takes beyond its length, ns: where the arm changes (in so many, as a
 * share), the guard and the rest of the period in which that ends; and half a period at its end.
 * overhead_ns: what windows were seen to take beyond length and guard, the least that is assumed.
 */
double pilot_aligned_ns(const struct pilot *pilot, double guard_ns, double overhead_ns,
			double changed);
void pilot_size(const struct pilot *pilot, const struct sizing_cfg *cfg, struct sizing *out);

#endif
