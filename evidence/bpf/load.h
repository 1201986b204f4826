/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_LOAD_H
#define SB_EVIDENCE_LOAD_H

#include "evidence/evidence.h"
#include "evidence-abi.h"

/* What the BPF program knows, as functions of evidence.h. */
struct evidence_bpf;

/* NULL: SB_EPERM, SB_ECONFINED, SB_EUSAGE (not built in). */
struct evidence_bpf *evidence_bpf_open(const struct evidence_config *cfg, struct sb_err *err);
void evidence_bpf_close(struct evidence_bpf *b); /* NULL is harmless */
void evidence_bpf_add(struct evidence_bpf *b, pid_t pid);
/* NULL: the counter is known. Else why it is not. */
const char *evidence_bpf_unknown(const struct evidence_bpf *b, enum evidence_counter counter);
uint64_t evidence_bpf_lost(const struct evidence_bpf *b);
void evidence_bpf_take(struct evidence_bpf *b, struct evidence_reading *r);
void evidence_bpf_pauses(struct evidence_bpf *b, uint64_t until_ns, size_t most,
			 evidence_pause_fn *fn, void *ctx);
bool evidence_bpf_stack(const struct evidence_bpf *b, size_t number,
			struct evidence_stack_copy *out);

#endif
