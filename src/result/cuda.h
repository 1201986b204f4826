/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_CUDA_H
#define SB_RESULT_CUDA_H

#include "result.h"

/*
 * What the targets of a preset for CUDA's driver add up to: the object `cuda` of the result. A
 * figure is known only if the run has every row of the kind, each with all functions hooked that
 * the library has; else it is unknown, with the first reason.
 *
 * - api_calls: of all kinds
 * - launches, allocations, transfers, syncs: calls of launch, alloc, memcpy, sync
 * - allocated_bytes, transferred_bytes: what calls of alloc and memcpy asked for that returned; a
 *   target's share is what it adds up by the name "bytes" (arg=bytes:N sum=bytes)
 * - sync_ns: from entry to return, where calls are timed
 * - launches_per_s, KIND.calls_per_s: calls by the time for which the functions were hooked
 * - KIND.calls, KIND.ns, KIND.missed: of each kind that the run has a target of
 * - KIND.p50_ns, KIND.p90_ns, KIND.p99_ns: of the calls of the kind that returned, from the
 *   histograms of its targets, so as exact as those
 * - ioctls, ioctl_ns: calls of ioctl() on the driver's devices, from entry to return
 * - memcpy.bytes, alloc.bytes: as transferred_bytes, allocated_bytes
 */
struct result_row {
	const char *kind, *spec; /* of a target: "cuda:cuMemFree" */
	const char *limited;	 /* a key that leaves calls of it out; NULL: none does */
};

/* The target whose calls the figures `ioctls` and `ioctl_ns` are. */
#define RESULT_IOCTLS "ioctl:nvidia*"

/* Fills res->cuda, unless no target is of the preset or RESULT_IOCTLS. rows: all of it.
 * ioctls_limited: as a row's. */
void result_cuda(struct result *res, const char *preset, const struct result_row *row, size_t n,
		 const char *ioctls_limited);

#endif
