/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_KERNELS_H
#define SB_TRACE_KERNELS_H

#include <stddef.h>
#include "event.h"

/*
 * Launches by what they launch: a handle, or the address of a function, in the value "function" of
 * the call, and the name that the trace has for it. Handles are those of a process. The list is
 * bounded; launches that have no room in it are counted in `others`, those without a known handle
 * in `unknown`.
 */
#define KERNELS_VALUE "function"

enum { KERNELS_MAX = 512, KERNELS_SLOTS = 2 * KERNELS_MAX };

struct kernels {
	uint64_t others, unknown;
	struct kernels_row {
		int32_t pid;
		unsigned int api;
		uint64_t handle, launches, total_ns; /* of the host, from entry to return */
		char *name;			     /* NULL: the trace does not know it */
	} row[KERNELS_MAX];
	size_t n;
	uint16_t slot[KERNELS_SLOTS]; /* inner: number of a row, by hash; 0: free */
};

void kernels_free(struct kernels *k);
void kernels_add(struct kernels *k, int32_t pid, unsigned int api, const struct trace_span *span);

/* The launches of one name, in all processes; name NULL: of all kernels without one. */
struct kernels_name {
	unsigned int api;
	const char *name; /* k's */
	uint64_t launches, total_ns;
	uint64_t handles; /* rows */
};

/* The most launched first; the caller frees. */
struct kernels_name *kernels_by_name(const struct kernels *k, size_t *n);

#endif
