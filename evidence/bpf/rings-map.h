/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_RINGS_MAP_H
#define SB_EVIDENCE_RINGS_MAP_H

#include "evidence/rings.h"

struct bpf_object;

/* Of an object that is not loaded yet: room for the rings of all processors, and the program
 * records each pause. False: it has no such maps, or there is no memory. */
bool rings_ask(struct rings *r, struct bpf_object *obj);
/* ... loaded. False: no memory. rings_unmap() in any case. */
bool rings_map(struct rings *r, const struct bpf_object *obj);
void rings_unmap(struct rings *r);

#endif
