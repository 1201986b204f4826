/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_PROC_H
#define SB_EVIDENCE_PROC_H

#include "evidence.h"

/*
 * What /proc knows, as functions of evidence.h. A thread counts from the first look at it to the
 * last one: what it did before, and after, is not in the sum.
 */
struct evidence_proc;

struct evidence_proc *evidence_proc_open(bool children);
void evidence_proc_close(struct evidence_proc *p); /* NULL is harmless */
void evidence_proc_add(struct evidence_proc *p, pid_t pid);
bool evidence_proc_knows(enum evidence_counter counter);
uint64_t evidence_proc_lost(const struct evidence_proc *p); /* ended since a look at them */
void evidence_proc_take(struct evidence_proc *p, struct evidence_reading *r);

#endif
