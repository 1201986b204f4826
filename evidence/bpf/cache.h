/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_CACHE_H
#define SB_EVIDENCE_CACHE_H

#include "evidence/evidence.h"

struct bpf_object;

/* The counters of the page cache (cache.bpf.c). As evidence_net_open(). */
struct evidence_part *evidence_cache_open(const struct bpf_object *main);
const char *evidence_cache_unknown(const struct evidence_part *p, enum evidence_counter counter);

#endif
