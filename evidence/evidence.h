/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_H
#define SB_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * What the machine did with the threads of some processes: on a processor, waiting for one, or off
 * it, and why. sbinject stops and writes to no process, and the kernel removes everything with the
 * descriptors of sbinject, however it ends.
 *
 * There are two ways to know. A BPF program at the scheduler's switches and wakeups (bpf/) knows
 * everything below and follows forks; it needs root. Without it, /proc has the time on a processor,
 * the time in the run queue, switches and page faults; the rest is unknown, with the reason.
 *
 * Counters begin at 0 when a process is added, and those of a reading never fall: threads that have
 * ended stay in the sum.
 */
enum evidence_counter {
	/* Where the time went, ns. With BPF these add up to the time that a thread was watched. */
	EVIDENCE_ON_CPU,
	EVIDENCE_RUN_QUEUE,
	EVIDENCE_FUTEX,
	EVIDENCE_IO,
	EVIDENCE_NETWORK,
	EVIDENCE_PAGE_FAULT,
	EVIDENCE_SLEEP,
	EVIDENCE_OTHER,
	EVIDENCE_REASONS,		   /* number of the above */
	EVIDENCE_WAITS = EVIDENCE_REASONS, /* how often: futex, io, ... other */
	EVIDENCE_VOLUNTARY = EVIDENCE_WAITS + EVIDENCE_REASONS - EVIDENCE_FUTEX,
	EVIDENCE_INVOLUNTARY,
	EVIDENCE_WAKEUPS,
	EVIDENCE_MIGRATIONS,
	EVIDENCE_FAULTS_MINOR,
	EVIDENCE_FAULTS_MAJOR,
	EVIDENCE_COUNTERS,
};

/* Groups of counters, as options name them: time, waits, switches (and what goes with them),
 * faults. */
enum evidence_group { GROUP_TIME, GROUP_WAITS, GROUP_SWITCHES, GROUP_FAULTS, GROUP_COUNT };
extern const char *const evidence_groups[GROUP_COUNT];

/* A counter as documents name it: "futex_ns", "switches_voluntary". */
extern const struct evidence_kind {
	const char *name, *help;
	enum evidence_group group;
} evidence_kinds[EVIDENCE_COUNTERS];

/* "on_cpu", "futex". reason: below EVIDENCE_REASONS. */
const char *evidence_reason(enum evidence_counter reason);

struct evidence_values {
	uint64_t of[EVIDENCE_COUNTERS];
};
void evidence_values_add(struct evidence_values *to, const struct evidence_values *from);
/* to - from; 0 where a counter fell. */
void evidence_values_take(struct evidence_values *to, const struct evidence_values *from);

struct evidence_thread {
	pid_t pid, tid;	   /* as sbinject sees them; 0: it has no number here */
	uint64_t began_ns; /* with tid, tells apart threads of one number */
	uint64_t t_ns;	   /* when it was read */
	uint64_t span_ns;  /* how long it has been watched */
	struct evidence_values values;
};

struct evidence_reading {
	uint64_t t_ns; /* CLOCK_MONOTONIC */
	struct evidence_thread *thread;
	size_t n_threads;
	struct evidence_values sum; /* of these and of all that have ended */
};

struct evidence;

/* Why there is no BPF here: SB_EPERM, SB_ECONFINED, SB_EUSAGE (not built in). Loads the program,
 * and removes it. */
int evidence_probe(struct sb_err *err);

/* children: processes that begin later belong to those added. Never fails: without BPF by /proc. */
struct evidence *evidence_open(bool children);
/* By /proc, also where BPF is permitted: nothing runs in the kernel. */
struct evidence *evidence_open_proc(bool children);
void evidence_close(struct evidence *e); /* NULL is harmless */
/* All threads of a process, now and later; not its present children. A second call does nothing. */
void evidence_add(struct evidence *e, pid_t pid);

/* NULL: the program runs in the kernel. Else why it does not. */
const struct sb_err *evidence_limit(const struct evidence *e);
/* NULL: the counter is known. Else why it is not, as a text. */
const char *evidence_unknown(const struct evidence *e, enum evidence_counter counter);
uint64_t evidence_opened_ns(const struct evidence *e); /* CLOCK_MONOTONIC */
/* Threads that are not in the sum, or not wholly: there were too many; of /proc: they have ended,
 * and what they did after the last look at them is not known; by BPF: one changed at each of a
 * thousand tries to read it. */
uint64_t evidence_lost(const struct evidence *e);

void evidence_take(struct evidence *e, struct evidence_reading *r);
void evidence_reading_free(struct evidence_reading *r);

/* The same thread in another reading; NULL: it is not there. */
const struct evidence_thread *evidence_find(const struct evidence_reading *r,
					    const struct evidence_thread *thread);

#endif
