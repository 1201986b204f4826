/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_LANE_H
#define SWEEP_LANE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Injected time of many threads and processes as one number.
 *
 * Within a lane delays follow one another, so they are summed. Lanes that are replicas (same role:
 * ranks, workers) run side by side, so their injected time is averaged. With 8 ranks delayed alike
 * a plain sum would be 8 times what each of them feels, and kappa an eighth of the truth. The mean
 * is also right where each of 4 workers serves a quarter of the items: T and x both are a quarter
 * of the time of one item. Roles (API server and engine) are different parts of one path: summed.
 *
 *	x = sum over roles r of ( sum of injected time in r / lanes of r that were hit )
 *
 * A lane that was never hit in the experiment is not one of the replicas: idle workers would make
 * kappa too large. So the hits of all windows decide which lanes count, not each window.
 */
enum lane_mode {
	LANE_PROCESS, /* a lane is a process */
	LANE_THREAD,  /* a lane is a thread */
	LANE_ALL      /* everything is one lane: a plain sum */
};

/* A counter's place: the finest part that the caller can distinguish. Numbers are the caller's. */
struct lane {
	int role, process, thread; /* indices >= 0; thread is unique among all processes */
};

struct lane_count {
	uint64_t hits;
	uint64_t injected_ns; /* measured, overrun included: what the thread really lost */
	uint64_t overrun_ns;  /* of it: interruptions, which are no part of the dose */
};

/*
 * Weights w with x = sum w[i] * injected[i]; total[i] over all windows selects the lanes. A role >=
 * 0 gives that role alone, -1 all. Returns the number of lanes that were hit.
 */
size_t lane_weights(const struct lane *lane, size_t n, const struct lane_count *total,
		    enum lane_mode mode, int role, double *w);

const char *lane_mode_name(enum lane_mode mode);

#endif
