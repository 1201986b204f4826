/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_ABI_H
#define SB_EVIDENCE_ABI_H

#include <linux/types.h>

/*
 * Shared by the program in the kernel (evidence.bpf.c) and its loader (load.c). Both are built
 * together, so there is no version.
 *
 * Each watched thread has a row, which the kernel finds by task-local storage. At each moment the
 * thread is in one state, and its time since the last change belongs to that state: so the states
 * add up to the time that the thread was watched. Row 0 sums up the threads that have ended.
 */
enum {
	EVIDENCE_STATE_ON_CPU,
	EVIDENCE_STATE_RUN_QUEUE,
	EVIDENCE_STATE_FUTEX, /* from here on: off the processor */
	EVIDENCE_STATE_IO,
	EVIDENCE_STATE_NETWORK,
	EVIDENCE_STATE_PAGE_FAULT,
	EVIDENCE_STATE_SLEEP,
	EVIDENCE_STATE_OTHER,
	EVIDENCE_STATES,
};

#define EVIDENCE_ROWS	   16384 /* threads at one time, and row 0 */
#define EVIDENCE_CALLS	   1024	 /* system calls that have a class; a power of two */
#define EVIDENCE_BY_FILE   0x80	 /* a class: NETWORK if the first argument is a socket */
#define EVIDENCE_RESTARTED 0x81	 /* ... restart_syscall(2): a sleep that goes on after a stop */
#define EVIDENCE_MODE_OFF  0
#define EVIDENCE_MODE_NS   1 /* the iterator: learn the pid namespace of this task */
#define EVIDENCE_MODE_ADD  2 /* ... watch this task */
#define EVIDENCE_MODE_NOW  3 /* ... read what the kernel counts itself, of watched tasks */

struct evidence_row {
	__u32 seq; /* odd: a change is in progress */
	__u32 tid, tgid;
	__u32 state, cpu;
	__u32 unused;
	__u64 began, since; /* CLOCK_MONOTONIC; since 0: nothing is known yet */
	__u64 ns[EVIDENCE_STATES], entered[EVIDENCE_STATES];
	__u64 voluntary, involuntary, wakeups, migrations;
	__u64 minor, major;		/* page faults, as of the last look */
	__u64 minor_first, major_first; /* ... when the thread was first seen */
};

struct evidence_control {
	/* Set by the loader. */
	__u32 mode, children;
	__u8 class_of[EVIDENCE_CALLS];
	/* Set by the program. */
	__u32 ns_level, next_row;
	__u64 ns_own;
	__u64 threads_lost; /* there was no row for them */
	/* Unequal: the counters of a thread are moving to row 0. */
	__u64 folds_begun, folds_done;
};

#endif
