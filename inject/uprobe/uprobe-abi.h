/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_ABI_H
#define SB_UPROBE_ABI_H

#include <linux/types.h>

/*
 * Shared by the program in the kernel (uprobe.bpf.c) and its loader (uprobe.c). Both are built
 * together and live as long as one session, so there is no version.
 *
 * Which processes are delayed: a process has a row of the map `procs` with a set of roots, one bit
 * each; a target needs one of them (0: every process of the machine). A fork inherits its parent's
 * set. Bit 0 is the session's own tree, the others are pid= of targets.
 *
 * What is counted: by program image ("row": a process until it execs) and target, separately on
 * each processor. Row 0 is of no process: interrupts, threads of the kernel, and hits for whose row
 * the kernel had no memory at hand, as in many processes that begin at the same time.
 */
#define UPROBE_BUCKETS	   120 /* as SB_PAGE_BUCKETS, with the same boundaries, in ns */
#define UPROBE_CLASSES	   4   /* kinds of first instructions, by the cost of a hit on them */
#define UPROBE_NO_CLASS	   UPROBE_CLASSES
#define UPROBE_OVERRUN_NS  2000 /* a spin that ends later than that was interrupted */
#define UPROBE_DELAY_MAX   10000000ull
#define UPROBE_MULTI	   48 /* BPF_TRACE_UPROBE_MULTI */
#define UPROBE_MAX_ROWS	   65536
#define UPROBE_TREE	   1ull /* the root of the session's tree */
#define UPROBE_SKIP_BIT	   62	/* the root of excluded processes: sbinject itself */
#define UPROBE_COOKIE_BITS 32	/* cookie: the target, and above these bits the class */

enum uprobe_state { UPROBE_OFF, UPROBE_COUNT, UPROBE_DELAY };

struct uprobe_target {
	__u32 state; /* enum uprobe_state; stored last */
	__u32 unused;
	__u64 delay_ns, every;
	__u64 need; /* one of these roots; 0: any process */
};

struct uprobe_proc {
	__u64 roots;
	__u32 row, generation;
};

struct uprobe_key {
	__u32 row, target;
};

struct uprobe_counts {
	__u64 hits, cuts;
	__u64 injected_ns; /* spent, including the cost of entry and exit, without overrun */
	__u64 overrun_ns, cut_ns, max_ns;
	__s64 residual_ns; /* given more (+) or less (-) than set so far */
	__u64 bucket[UPROBE_BUCKETS];
};

struct uprobe_numbers {
	__u32 next_row; /* from 1 on */
	__u32 ns_level; /* of the loader's pid namespace: pids are as seen there; 0: the first */
	__u64 ns_own;
	__u64 events_lost, hits_lost;
	__u64 hits_apart; /* counted in row 0 for want of memory */
};

enum uprobe_event_kind {
	UPROBE_EVENT_FORK, /* a process joined the tree */
	UPROBE_EVENT_EXEC, /* a process began another row */
	UPROBE_EVENT_EXIT,
	UPROBE_EVENT_FIRST, /* the first hit of a process in no tree */
	UPROBE_EVENT_BELL,  /* its dynamic linker has mapped something */
};

struct uprobe_event {
	__u32 kind;
	__u32 pid, row, generation;
	__u32 parent; /* fork: the parent's row */
	__u32 unused;
	__u64 roots;
};

#endif
