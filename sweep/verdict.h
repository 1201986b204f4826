/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_VERDICT_H
#define SWEEP_VERDICT_H

#include "result.h"

/*
 * The verdicts. They judge kappa, the slope at no delay: with a slack it is the slope below it, so
 * that a function with slack is HIDDEN, and kappa_beyond is the slope above it. With the interval
 * [lo, hi] and the threshold d (0.1), in this order:
 *
 *	NOT CALLED	no hit in the whole sweep
 *	INVALID		throughput is pinned at the rate of arrivals and there is no response
 *			source; or the queue is saturated (queue.h), and then kappa is unknown;
 *			or the positive control failed; or the injected time is not hits
 *			times dose (0.95 to 1.1); or a share of the windows had no items
 *	INCONCLUSIVE	fewer than 2 blocks, or no interval
 *	SLACK		hi < d, and a slack was found or bracketed
 *	HIDDEN		hi < d: an equivalence test (Schuirmann 1987), its level 2.5 %
 *	CRITICAL	lo > 1/2 and hi > 1 - d, and a slack that is not excluded is at most half of
 *			the largest dose, of a single dose at most a third
 *	PARTIAL		lo > d, and a slack with all felt beyond it is refuted; or the interval
 *			reaches 1 - d, which the reason mentions, and the slack is bounded in the
 *			same way
 *	INCONCLUSIVE	lo > d else, with the doses that would tell a part from a slack
 *	INCONCLUSIVE	else, with the smallest kappa that this run would have seen
 *
 * CRITICAL says how large a slack is not excluded, from 5 % of the time per item on: a delay above
 * a slack is felt nearly in full, too.
 *
 * CRITICAL and PARTIAL also need the randomisation test at 5 %. With many targets each verdict's
 * own p (of "no effect" or of "kappa >= d") must be significant after Holm's correction over all
 * targets that were tested; intervals stay 95 % each.
 *
 * Not felt, no thread always busy and no control that could have distinguished an open loop from a
 * closed one: INCONCLUSIVE, since throughput that is pinned looks the same.
 *
 * A target without blocks keeps the reason that it has (its turn never came, its smallest exact
 * delay is too large).
 *
 * A verdict needs that A/A's interval is narrower than the effect it claims; else INCONCLUSIVE.
 *
 * Where T was adjusted (adjust.h), HIDDEN needs that kappa is below 1/2 without adjusting, too, and
 * CRITICAL that it may be above; else INCONCLUSIVE.
 *
 * Where it is not clear how many lanes are side by side, a verdict stands that holds for the fewest
 * and for the most; else INCONCLUSIVE, with both kappas.
 *
 * Where the calls fall behind the items (behind.h), only CRITICAL stands; else INCONCLUSIVE.
 *
 * A delay that makes the program faster (hi < -d) is INCONCLUSIVE, with that reason.
 */
#define VERDICT_BLOCKS 2
#define VERDICT_BUSY   0.95 /* of a CPU: this thread sets the pace, or spins */

/* PARTIAL: does the interval reach 1 - threshold? Then it is not shown that a part is all. */
bool verdict_may_be_full(const struct sweep_target *target, double threshold);

/*
 * Fills verdict, reason and p_adjusted of every target from the rest of the result. Targets with
 * `screened` set keep theirs, unless a gate forbids it.
 */
void verdict_judge(struct sweep_result *res);

/*
 * Decides between an open and a closed loop from the available data; fills gates.load and
 * load_reason. busy: the busiest thread's share of a CPU in SHAM, NAN unknown. throughput,
 * response: kappas of both where a response source is given, else NULL.
 */
void verdict_load(struct sweep_gates *gates, double threshold, double busy,
		  const struct sweep_estimate *throughput, const struct sweep_estimate *response);

/*
 * Decides the rest from the targets: a program that responds to a delay does not run at the rate of
 * arrivals. Where neither a target nor the progress function (gates.control, even if it was not
 * requested) has a response, something else sets the pace, and the sweep cannot determine what.
 */
void verdict_load_seen(struct sweep_result *res);

#endif
