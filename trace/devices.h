/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_DEVICES_H
#define SB_TRACE_DEVICES_H

#include <stddef.h>
#include "event.h"

/*
 * What devices did, added up: spans of functions whose code is TRACE_DEVICE. A device is a number
 * in a process, which chooses which devices it sees. busy_ns is the time in which at least one
 * stream of the device was at work: the union of the spans. Its memory is bounded: it needs spans
 * to come in about the order of their starts, and is unknown where one comes too late for that.
 */
enum { DEVICES_KERNELS = 4096, DEVICES_MAX = 1024, DEVICES_OPEN = 1 << 16 };

struct devices_sum {
	uint64_t n, ns;
};

struct devices_interval {
	uint64_t start, end;
};

struct devices {
	struct devices_sum kernels, copies, memsets;
	uint64_t copied_bytes;
	bool bytes_unknown;    /* of a copy */
	uint64_t without;      /* spans whose device is not known, or one too many */
	uint64_t kernels_left; /* kernels that have no row */
	struct devices_row {
		char *name;
		uint64_t n, total_ns, min_ns, max_ns;
	} * row; /* by kernel */
	size_t n_rows;
	struct devices_busy {
		int32_t pid;
		uint64_t device, busy_ns;
		bool late; /* busy_ns is not known */
		/* inner */
		struct devices_interval *open; /* apart, in order */
		size_t n_open, room;
		uint64_t closed; /* no interval begins earlier */
	} * busy;
	size_t n_busy;
	/* inner: rows by the hash of their name */
	uint32_t *slot;
};

void devices_add(struct devices *d, int32_t pid, const char *kind, const char *name,
		 const struct trace_span *span);
/* Afterwards rows are in the order of their total, and busy_ns holds. */
void devices_finish(struct devices *d);
void devices_free(struct devices *d);

#endif
