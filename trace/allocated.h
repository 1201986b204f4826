/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_ALLOCATED_H
#define SB_TRACE_ALLOCATED_H

#include <stdbool.h>
#include <stddef.h>
#include "event.h"

/*
 * Memory that the calls of one API allocate and free, by the values of the calls: one with an
 *"address" and "bytes" allocates, one with an "address" alone frees. A call whose "result" is not 0
 * has done neither. Memory is in use from the end of its allocation to the begin of the call that
 * frees it.
 *
 *	allocated_add(&a, pid, span);	each call of the API
 *	allocated_finish(&a);		once, then its sums
 *	allocated_free(&a);
 */
struct allocated {
	uint64_t allocations, bytes, frees, freed_bytes;
	uint64_t live, live_bytes,
		peak_bytes; /* of the trace's allocations, those that were not freed */
	uint64_t older;	    /* frees of memory that the trace does not know */
	uint64_t unknown;   /* calls without a known address, size or result */
	bool too_many;	    /* none of the sums is known */
	/* inner */
	struct allocated_event {
		uint64_t ns, address, bytes;
		int32_t pid;
		bool frees;
	} * event;
	size_t n, room;
};

void allocated_add(struct allocated *a, int32_t pid, const struct trace_span *span);
void allocated_finish(struct allocated *a);
void allocated_free(struct allocated *a);

#endif
