/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_COPIES_H
#define SB_TRACE_COPIES_H

#include "event.h"

/*
 * Copies by direction, as far as the call itself says it: by the name of the function
 * (cuMemcpyHtoDAsync) or by its value "kind", a cudaMemcpyKind. Arrays are memory of the device. Of
 * a copy between addresses of one range (cuMemcpy, cudaMemcpyDefault) it is unknown. Calls whose
 * "result" is not 0 have copied nothing and are not in the sums.
 */
enum copies_direction {
	COPIES_TO_DEVICE,
	COPIES_TO_HOST,
	COPIES_ON_DEVICE,
	COPIES_ON_HOST,
	COPIES_PEER, /* from one device to another */
	COPIES_UNKNOWN,
	COPIES_DIRECTIONS
};

struct copies {
	struct copies_sum {
		uint64_t n, bytes, total_ns; /* of the host, from entry to return */
		uint64_t unsized;	     /* of n, those of which the bytes are not known */
	} of[COPIES_DIRECTIONS];
};

/* A call of the function of that name, which need not be a copy. */
void copies_add(struct copies *c, const char *function, const struct trace_span *span);

/* "to device". */
const char *copies_name(enum copies_direction direction);

#endif
