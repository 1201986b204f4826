/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_EVIDENCE_CONTENTION_H
#define SB_EVIDENCE_CONTENTION_H

#include "evidence-abi.h"

/*
 * The waits of a thread for locks of the kernel, by the tracepoints contention_begin and
 * contention_end. Pure: within.bpf.c runs it in the kernel, unit/test-evidence anywhere.
 *
 * A mutex begins several times in one wait: where the thread spins for it, where it goes to sleep,
 * and again whenever it has been woken and another thread was faster. A spinlock and all others
 * begin once; if one does so again, its end was missed (a program does not run within itself, as in
 * an interrupt), and the wait is another one.
 */
#define CONTENTION_SPIN	 1 /* LCB_F_SPIN, LCB_F_MUTEX */
#define CONTENTION_MUTEX 32

static __attribute__((always_inline)) inline __u32 contention_kind(__u32 flags)
{
	if (flags & CONTENTION_MUTEX)
		return EVIDENCE_LOCK_MUTEX;
	return flags & CONTENTION_SPIN ? EVIDENCE_LOCK_SPIN : EVIDENCE_LOCK_RWSEM;
}

/* An interrupt may wait for a spinlock while its thread waits for a mutex: each kind has a place of
 * its own. The place of a wait that begins, whose `since` the caller sets; NULL: it goes on. */
static __attribute__((always_inline)) inline struct evidence_lock *
contention_begin(struct evidence_lock lock[EVIDENCE_LOCKS], __u64 addr, __u32 flags)
{
	__u32 kind = contention_kind(flags);
	struct evidence_lock *place = &lock[kind];

	if (kind == EVIDENCE_LOCK_MUTEX && place->addr == addr)
		return 0;
	place->addr = addr;
	return place;
}

/* The kind of the wait that ends; EVIDENCE_LOCKS: none was seen to begin. */
static __attribute__((always_inline)) inline __u32
contention_end(struct evidence_lock lock[EVIDENCE_LOCKS], __u64 addr)
{
	for (__u32 kind = 0; kind < EVIDENCE_LOCKS; kind++) {
		if (lock[kind].addr != addr)
			continue;
		lock[kind].addr = 0;
		return kind;
	}
	return EVIDENCE_LOCKS;
}

#endif
