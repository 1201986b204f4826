/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_VERDICT_H
#define SWEEP_VERDICT_H

#include "result.h"

/*
 * What the numbers mean. Judged is kappa, the slope at no delay: with a slack it is the slope
 * below it, so that a function with slack is HIDDEN, and kappa_beyond says what comes after it.
 * With the interval [lo, hi] and the threshold d (0.1), in this order:
 *
 *	NOT CALLED	no hit in the whole sweep
 *	INVALID		throughput is pinned at the rate of arrivals and there is no response
 *			source; or the positive control failed; or what was injected is not hits
 *			times dose (0.95 to 1.1); or a share of the windows had no
 *items INCONCLUSIVE	fewer than 8 blocks, or no interval
 *	HIDDEN		hi < d: an equivalence test (Schuirmann 1987), its level 2.5 %
 *	CRITICAL	lo > 1/2 and hi > 1 - d
 *	PARTIAL		lo > d; the reason says so when the interval reaches 1 - d
 *	INCONCLUSIVE	else, with the smallest kappa that this run would have seen
 *
 * CRITICAL and PARTIAL also need the randomisation test at 5 %. With many targets each verdict's
 * own p (of "no effect" or of "kappa >= d") must hold after Holm's correction over all targets
 * that were tested; intervals stay 95 % each.
 *
 * Not felt, no thread always busy and no control that could have told an open loop from a closed
 * one: INCONCLUSIVE, since throughput that is pinned looks the same.
 *
 * A target without blocks keeps the reason that it has (its turn never came, its smallest honest
 * delay is too large).
 *
 * A delay that makes the program faster (hi < -d) is INCONCLUSIVE and said so.
 */
#define VERDICT_BLOCKS 8
#define VERDICT_BUSY   0.95 /* of a CPU: this thread sets the pace, or spins */

/* Fills verdict, reason and p_adjusted of every target from the rest of the result. Targets with
 * `screened` set keep theirs, unless a gate forbids it. */
void verdict_judge(struct sweep_result *res);

/* Open loop or closed, from what is known; fills gates.load and load_reason.
 * busy: the busiest thread's share of a CPU in SHAM, NAN unknown.
 * throughput, response: kappas of both where a response source is given, else NULL. */
void verdict_load(struct sweep_gates *gates, double threshold, double busy,
		  const struct sweep_estimate *throughput, const struct sweep_estimate *response);

/*
 * What is still unknown then, by what was seen: who feels a delay does not run at the rate of
 * arrivals. Where no target was felt and neither was the progress function (gates.control, though
 * it was not asked for), something else sets the pace, and the sweep cannot tell what.
 */
void verdict_load_seen(struct sweep_result *res);

#endif
