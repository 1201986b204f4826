/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_CLASS_H
#define SB_EVIDENCE_CLASS_H

#include "evidence/bpf/evidence-abi.h"

/* What a thread that sleeps in a system call waits for: an EVIDENCE_STATE_ or one of those that
 * take a look, of each number; of the architecture that this is built for. */
void evidence_classes(__u8 class_of[EVIDENCE_CALLS]);

#endif
