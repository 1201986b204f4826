/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_ACCOUNT_H
#define SWEEP_ACCOUNT_H

#include "record.h"

/*
 * What the counters say about a target: each in place of T in the blocks that its kappa is from,
 * with the inference of infer.h. The counters of the delayed side are divided by the same number of
 * lanes as the injected time, so that the states of a lane that is delayed add up to its time, and
 * their slopes to kappa.
 */
struct account_of {
	struct record_of of;
	enum lane_mode mode;
	double rounding; /* of a cell, as a share of it; 0: none */
};

/* Sets target->change; the record has counters. rng as for infer_kappa(). */
void account_target(const struct record *rec, const struct account_of *of, struct rng *rng,
		    struct sweep_target *target);

/* After all targets, with the gates filled in: p_adjusted, significant, n_tests. */
void account_judge(struct sweep_result *res);

#endif
