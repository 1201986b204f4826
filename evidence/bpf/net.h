/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_NET_H
#define SB_EVIDENCE_NET_H

#include "evidence/evidence.h"

struct bpf_object;

/* The counters of sockets (net.bpf.c), which adds them to the rows of the main program. main:
 * loaded; it outlives this. part_close() ends it. */
struct evidence_part *evidence_net_open(const struct bpf_object *main);
/* NULL: the counter, one of sockets, is known. Else why it is not. */
const char *evidence_net_unknown(const struct evidence_part *p, enum evidence_counter counter);

#endif
