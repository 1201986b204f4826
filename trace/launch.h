/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_LAUNCH_H
#define SB_TRACE_LAUNCH_H

#include "hist.h"

/*
 * The host's side of a device's work, by thread: launches, the gaps between them, and the waits.
 * What a function is for is the caller's to say.
 *
 * A gap is from the end of one launch to the begin of the next one of the same thread. What is
 * between them is in it: waits, delays that sbinject gave, the cost of measuring the calls. A call
 * that is made in a launch or a wait is a part of that one.
 *
 * Calls come in the order of their ends, so a call comes after those made in it. Of each thread the
 * last LAUNCH_OPEN calls are kept, which a later one may hold; memory does not grow with calls. A
 * call that holds more than these, or crosses them, is counted in `unsure`.
 *
 *	struct launch l = { 0 };
 *	launch_add(&l, &pool, ...);	each call
 *	launch_finish(&l, &pool);	once
 */
enum launch_role {
	LAUNCH_NONE,
	LAUNCH_CALL, /* gives work to the device */
	LAUNCH_WAIT, /* waits for it */
};

enum { LAUNCH_OPEN = 16 };

struct launch_sum {
	uint64_t n, total_ns, min_ns, max_ns;
	struct hist hist;
};

struct launch {
	uint64_t launches, first_ns, last_ns; /* of launches and waits; CLOCK_MONOTONIC */
	struct launch_sum gap, wait;
	uint64_t gap_wait_ns; /* of the gaps, in waits */
	uint64_t unsure;
	/* inner */
	struct launch_root {
		uint64_t start, end, dur;
		enum launch_role role;
	} open[LAUNCH_OPEN];
	unsigned int n_open;
	uint64_t launch_end, waited_ns; /* of the last launch; waits since then */
	uint64_t done_ns;		/* end of the last call that is no longer open */
};

void launch_add(struct launch *l, struct hist_pool *pool, enum launch_role role, uint64_t start,
		uint64_t dur);
void launch_finish(struct launch *l, struct hist_pool *pool);

/* A quantile, 0 to 1, within 3 %; -1: unknown. */
double launch_quantile(const struct hist_pool *pool, const struct launch_sum *sum, double q);

#endif
