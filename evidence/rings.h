/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_RINGS_H
#define SB_EVIDENCE_RINGS_H

#include "evidence.h"
#include "evidence/bpf/evidence-abi.h"

/* The rings that the program in the kernel puts pauses into, one for each processor. */
struct rings {
	struct evidence_ring *ring;
	struct evidence_event *event; /* `size` of each ring, one ring after the other */
	uint64_t *head;		      /* of each ring, as of the last rings_take() */
	unsigned int n;
	uint32_t size; /* a power of two */
};

/* As evidence_pauses(): of what is in the rings at the call. */
void rings_take(struct rings *r, uint64_t until_ns, size_t most, evidence_pause_fn *fn, void *ctx);

#endif
