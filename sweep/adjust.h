/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_ADJUST_H
#define SWEEP_ADJUST_H

#include "pilot.h"
#include "record.h"

/*
 * Takes out of T what is known and not caused by the delay: covariates, such as the tokens of an
 * item. Pure.
 *
 *	T = block + arm + beta (c - mean of c) + noise
 *
 * over the cells of all blocks with a delay, of all experiments; each arm of each of them has its
 * own level, so that beta is from what covariates and T have in common within blocks beyond the
 * arms. What was injected is a regressor, too: it differs between the cells of an arm where delays
 *are interrupted, which T feels and kappa is not concerned with. The blocks without delay (A/A) are
 *not in the fit, and are adjusted by it. Slopes are those of least squares, and the standard errors
 *that follow are in infer.h.
 *
 * A covariate that a delay changes carries a part of the delay's effect, and adjusting for it would
 * take that out of kappa. So each is put in the place of T, in the blocks of each target and in
 *those in which the progress function is delayed, by itself (1 %, Holm) and then beside the others
 *(5 %): if any of these contrasts is significant, the covariate is not used. This shows nothing
 *where no delay did anything: a source that counts the time, or the items, moves as T does, and
 *where T is not seen to move, neither is the source. Adjusting for it leaves nothing of T, the
 *effects of delays included. So nothing is adjusted unless a delay has slowed the program in the
 *same sweep, by adjusted times.
 */
#define ADJUST_MOVED  0.01
#define ADJUST_BESIDE 0.05
#define ADJUST_SLOWED 0.001

/*
 * Fits, and sets rec->adjust and out[], of which there is one for each of the record's covariates.
 * of: the windows that each test is about. moved_target is of->target of the one that moved it.
 */
void adjust_fit(struct record *rec, const struct record_of *of, size_t n_of,
		struct sweep_adjust *out);

/* The same for the windows of a pilot, all without delay, of so many covariates: their spread is
 * what the windows to come are sized by. Leaves few windows alone. */
void adjust_pilot(struct pilot_window *win, size_t n, size_t covariates);

#endif
