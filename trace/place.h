/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_PLACE_H
#define SB_TRACE_PLACE_H

#include "nest.h"

/*
 * Where the spans of one thread are drawn by viewers that show a thread as a stack of slices, sort
 * slices by their starts and take the order of the file where these are equal. There
 *
 * - a call ends no earlier than the calls made in it;
 * - a call begins 1 ns earlier where it would begin with a call made in it, which comes first in
 * the file, if nothing lies there;
 * - calls that cross go to further lanes; if there are PLACE_LANES, the crossing part is cut off.
 */
enum { PLACE_LANES = 8 };

struct place_lanes {
	struct nest lane[PLACE_LANES];
	unsigned int n;
};

struct place {
	unsigned int lane;
	uint64_t start, end;
	bool moved; /* start and end are not the span's own */
};

void place_span(struct place_lanes *lanes, uint64_t start, uint64_t end, struct place *place);
void place_free(struct place_lanes *lanes);

#endif
