/* SPDX-License-Identifier: MIT */
#ifndef SB_RHYTHM_H
#define SB_RHYTHM_H

#include <stddef.h>
#include <stdint.h>

/* How a counter grows, from looks at it one after another. */
struct source_rhythm {
	uint64_t period_ns; /* published at intervals; 0: it is up to date at any time */
	double jump;	    /* the least growth that is a change; 0: any */
};

struct looks {
	double *grown;	 /* since the look before, 0 or more */
	uint64_t *at_ns; /* increasing */
	size_t n;
};

/* The increases that are no less than a tenth of the largest, *least; *share: of all growth. */
size_t rhythm_jumps(const struct looks *looks, double *least, double *share);

/*
 * Published at intervals: nearly all growth comes in jumps, which are less than half of the looks.
 * Where a look takes as long as a period (a command on a busy machine) most see a jump. Then some
 * see none, and the size of a jump does not follow the time since the look before: the sizes differ
 * by less than half as much as the rates do. Between jumps the number may stand still, or grow a
 * little: a database brings its statistics up to date each second, and counts the query that asks
 * for them at once.
 */
void rhythm_find(const struct looks *looks, struct source_rhythm *out);

#endif
