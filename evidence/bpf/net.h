/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_NET_H
#define SB_EVIDENCE_NET_H

#include "evidence/evidence.h"

struct bpf_object;

/* The counters of sockets (net.bpf.c), which adds them to the rows of the main program. */
struct evidence_net;

/* main: loaded; it outlives this. Never fails: what cannot be attached is not known. */
struct evidence_net *evidence_net_open(const struct bpf_object *main);
void evidence_net_close(struct evidence_net *n); /* NULL is harmless */
/* NULL: the counter, one of sockets, is known. Else why it is not. */
const char *evidence_net_unknown(const struct evidence_net *n, enum evidence_counter counter);

#endif
