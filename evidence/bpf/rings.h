/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_RINGS_H
#define SB_EVIDENCE_RINGS_H

#include "evidence/evidence.h"
#include "evidence-abi.h"

struct bpf_object;

/* The rings that the program in the kernel puts pauses into, one for each processor. */
struct rings {
	struct evidence_ring *ring;
	struct evidence_event *event; /* `size` of each ring, one ring after the other */
	unsigned int n;
	uint32_t size; /* a power of two */
};

/* Of an object that is not loaded yet: room for n rings, and the program tells each pause. False:
 * the object has no such maps, or there is no memory. */
bool rings_ask(struct rings *r, struct bpf_object *obj);
/* ... loaded. False: no memory. rings_unmap() in any case. */
bool rings_map(struct rings *r, const struct bpf_object *obj);
void rings_unmap(struct rings *r);

/* As evidence_pauses(). */
void rings_take(struct rings *r, uint64_t until_ns, size_t most, evidence_pause_fn *fn, void *ctx);

#endif
