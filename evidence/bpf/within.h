/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_WITHIN_H
#define SB_EVIDENCE_WITHIN_H

#include "evidence/evidence.h"

struct bpf_object;

/* The counters of what threads do within the kernel: its locks, requests to devices, files opened
 * (within.bpf.c). As evidence_net_open(). */
struct evidence_part *evidence_within_open(const struct bpf_object *main);
const char *evidence_within_unknown(const struct evidence_part *p, enum evidence_counter counter);

#endif
