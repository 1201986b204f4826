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
 * the time in the run queue, switches, page faults, calls and bytes; the rest is unknown, with the
 * reason.
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
	EVIDENCE_READ_CALLS,
	EVIDENCE_WRITE_CALLS,
	EVIDENCE_READ_BYTES,
	EVIDENCE_WRITE_BYTES,
	EVIDENCE_DISK_READ_BYTES,
	EVIDENCE_DISK_WRITE_BYTES,
	/* Of sockets, by the calls of the threads. */
	EVIDENCE_TCP_CONNECTS,
	EVIDENCE_TCP_ACCEPTS,
	EVIDENCE_TCP_BYTES_SENT,
	EVIDENCE_TCP_BYTES_RECEIVED,
	EVIDENCE_TCP_SEGMENTS_SENT,
	EVIDENCE_TCP_SEGMENTS_RECEIVED,
	EVIDENCE_TCP_RETRANSMISSIONS,
	EVIDENCE_TCP_RTT,
	EVIDENCE_TCP_RTT_SAMPLES,
	EVIDENCE_UDP_BYTES_SENT,
	EVIDENCE_UDP_BYTES_RECEIVED,
	EVIDENCE_UDP_PACKETS_SENT,
	EVIDENCE_UDP_PACKETS_RECEIVED,
	/* Within the kernel: files, requests to devices, waits for locks of the kernel. */
	EVIDENCE_FILE_OPENS,
	EVIDENCE_DISK_READS,
	EVIDENCE_DISK_READ_TIME,
	EVIDENCE_DISK_WRITES,
	EVIDENCE_DISK_WRITE_TIME,
	EVIDENCE_SPINLOCK_WAITS,
	EVIDENCE_SPINLOCK_TIME,
	EVIDENCE_MUTEX_WAITS,
	EVIDENCE_MUTEX_TIME,
	EVIDENCE_RWSEM_WAITS,
	EVIDENCE_RWSEM_TIME,
	/* The page cache, in pages. */
	EVIDENCE_CACHE_READS,
	EVIDENCE_CACHE_MISSES, /* of these */
	EVIDENCE_CACHE_ADDS,
	/* Of the processor (hardware.h); only if they are asked for. */
	EVIDENCE_CYCLES,
	EVIDENCE_INSTRUCTIONS,
	EVIDENCE_LLC_REFERENCES,
	EVIDENCE_LLC_MISSES,
	EVIDENCE_DTLB_MISSES,
	EVIDENCE_BRANCH_MISSES,
	EVIDENCE_COUNTERS,
};

/* Groups of counters, as options name them: time, waits, switches (and what goes with them),
 * faults, io (calls, bytes, requests), network (connections, bytes, segments), locks (of the
 * kernel), hardware (of the processor). */
enum evidence_group {
	GROUP_TIME,
	GROUP_WAITS,
	GROUP_SWITCHES,
	GROUP_FAULTS,
	GROUP_IO,
	GROUP_NETWORK,
	GROUP_LOCKS,
	GROUP_HARDWARE,
	GROUP_COUNT,
};
extern const char *const evidence_groups[GROUP_COUNT];
enum { EVIDENCE_ALL = (1 << GROUP_HARDWARE) - 1 }; /* without hardware, which is asked for */

/* A list of groups, separated by commas, as bits of their numbers. memory and cpu are words for
 * faults, and for time and switches; all is for EVIDENCE_ALL. SB_EUSAGE. */
int evidence_groups_read(const char *text, unsigned int *groups, struct sb_err *err);

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

/*
 * The waits for one futex. The number of an address is that of its place in a reading, the same in
 * all readings. Number 0 has the waits for all addresses that are not distinguished: those that
 * come after the first 4095, and those of futex_waitv(2).
 */
struct evidence_futex {
	uint64_t addr; /* 0: of number 0 */
	pid_t pid;     /* whose address it is; 0: it has no number here */
	uint64_t ns, waits;
};

/* A thread's part of it, of the last addresses that the thread waited for. */
struct evidence_futex_part {
	uint32_t number;
	uint64_t ns, waits; /* both 0: unused */
};
enum { EVIDENCE_FUTEX_PARTS = 8 };

/* How a thread came to wait for an address, at the wait that was looked at last: its registers and
 * the memory from its stack pointer on. */
struct evidence_stack_copy {
	uint32_t version; /* another one: of another wait */
	uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
	uint8_t bytes[1024];
	size_t size;
};

struct evidence_thread {
	pid_t pid, tid;	   /* as sbinject sees them; 0: it has no number here */
	uint64_t began_ns; /* with tid, distinguishes threads of one number */
	uint64_t t_ns;	   /* when it was read */
	uint64_t span_ns;  /* how long it has been watched */
	struct evidence_values values;
	struct evidence_futex_part futex[EVIDENCE_FUTEX_PARTS];
	uint64_t pauses; /* that have ended; 0 without evidence_config.pauses */
	/* The counters of the processor are its own, and of what it started since; else they are
	 * among those of the thread that started it. */
	bool hardware;
};

/*
 * Off the processor: from the switch away from a thread to the switch to it. With BPF each has a
 * record, to those who ask for it. In the rings of the kernel there is room for some thousands for
 * each processor; what finds no room is counted.
 */
struct evidence_pause {
	uint64_t t_ns;		      /* its end, CLOCK_MONOTONIC */
	enum evidence_counter reason; /* EVIDENCE_RUN_QUEUE: the thread could run all the time */
	uint64_t wait_ns, queue_ns;   /* until it could run; until it did */
	uint64_t futex;		      /* address; 0: none, or several */
	pid_t pid, tid;
	pid_t waker; /* of a futex: the watched thread that woke it; 0: another one, or none */
	unsigned int cpu;
	const char *name;  /* of the thread; valid during the call */
	bool cut;	   /* it began before the thread was watched: that part is missing */
	bool counted;	   /* in the number of waits: it is neither cut nor the thread's birth */
	uint64_t began_ns; /* of the thread, as in struct evidence_thread */
	uint64_t number;   /* among the pauses of its thread, from 0 */
};
typedef void evidence_pause_fn(void *ctx, const struct evidence_pause *pause);

/* Time and number of pauses by reason. The time in the run queue behind a wait is
 * EVIDENCE_RUN_QUEUE's. */
struct evidence_pauses {
	uint64_t n[EVIDENCE_REASONS], ns[EVIDENCE_REASONS];
};

struct evidence_reading {
	uint64_t t_ns; /* CLOCK_MONOTONIC */
	struct evidence_thread *thread;
	size_t n_threads;
	struct evidence_values sum; /* of these and of all that have ended */
	/* By number; they add up to the time and the waits for futexes in `sum`. None of /proc. */
	struct evidence_futex *futex;
	size_t n_futexes;
	/* Of `sum`, what is in no pause that was put into a ring: those that found no room, those
	 * that evidence_config.sample left out, those in progress. */
	struct evidence_pauses unrecorded;
	uint64_t pauses_lost; /* they found no room */
};

struct evidence;

struct evidence_config {
	bool children; /* processes that begin later belong to those added */
	/* Bits of those that are read; nothing runs in the kernel for others alone. */
	unsigned int groups;
	/* Of frequent events one of so many, chosen at random, is counted, as so many; of pauses
	 * the program records one of so many. 0 and 1: each. */
	unsigned int sample;
	bool pauses; /* record each pause; without BPF none has a record */
};

/* Why there is no BPF here: SB_EPERM, SB_ECONFINED, SB_EUSAGE (not built in). Loads the program,
 * and removes it. */
int evidence_probe(struct sb_err *err);

/* Never fails: without BPF by /proc. */
struct evidence *evidence_open(const struct evidence_config *cfg);
/* By /proc, also where BPF is permitted: nothing runs in the kernel. */
struct evidence *evidence_open_proc(bool children);
void evidence_close(struct evidence *e); /* NULL is harmless */
/* All threads of a process, now and later; not its present children. A second call does nothing. */
void evidence_add(struct evidence *e, pid_t pid);

/* All processes have been added that are there: the counters of the processor begin. */
void evidence_begin(struct evidence *e);

/* NULL: the program runs in the kernel. Else why it does not. */
const struct sb_err *evidence_limit(const struct evidence *e);
/* NULL: the counter is known. Else why it is not, as a text. */
const char *evidence_unknown(const struct evidence *e, enum evidence_counter counter);
unsigned int evidence_sample(const struct evidence *e); /* 1: each event is counted */
bool evidence_tells(const struct evidence *e);		/* each pause */
/* When the first process was added, CLOCK_MONOTONIC; 0: none was. */
uint64_t evidence_began_ns(const struct evidence *e);
/* What the machine counted since then (machine.h). quick: see processors.h. */
struct machine_values;
void evidence_machine(const struct evidence *e, bool quick, struct machine_values *values);
/* How the counters of the processor came about (hardware.h). False: they were not asked for. */
struct hardware_about;
bool evidence_hardware(const struct evidence *e, struct hardware_about *about);
/* The control group of the process that was added first; NULL: none was added. */
struct cgroup;
const struct cgroup *evidence_cgroup(const struct evidence *e);
/* The memory of these processes now (memory.h), and what it was at evidence_memory_begin(), which
 * is for a moment before they are watched. It takes milliseconds for a large process, which may
 * wait meanwhile: never in a stop, nor while delays need their lease. */
struct memory_values;
void evidence_memory_begin(struct evidence *e, const pid_t *pid, size_t n);
const struct memory_values *evidence_memory_then(const struct evidence *e);
void evidence_memory(const struct evidence *e, const pid_t *pid, size_t n,
		     struct memory_values *values);
/* Threads that are not in the sum, or not wholly: there were too many; of /proc: they have ended,
 * and what they did after the last look at them is not known; by BPF: one changed at each of a
 * thousand tries to read it. */
uint64_t evidence_lost(const struct evidence *e);

void evidence_take(struct evidence *e, struct evidence_reading *r);
void evidence_reading_free(struct evidence_reading *r);

/*
 * Hands on pauses that were recorded before the call, ended before until_ns and were not handed on
 * yet, at most so many, in the order of their ends; of /proc there are none. Those of the last
 * millisecond may still be on their way into a ring. One thread may do so while another one takes
 * readings.
 */
void evidence_pauses(struct evidence *e, uint64_t until_ns, size_t most, evidence_pause_fn *fn,
		     void *ctx);

/* False: none was kept of this number, or it changed at each try to read it. x86_64 only. */
bool evidence_stack(const struct evidence *e, size_t number, struct evidence_stack_copy *out);

/* The same thread in another reading; NULL: it is not there. */
const struct evidence_thread *evidence_find(const struct evidence_reading *r,
					    const struct evidence_thread *thread);

#endif
