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

/* Of a task's accounting of calls and bytes. */
enum {
	EVIDENCE_IO_READ_CALLS,
	EVIDENCE_IO_WRITE_CALLS,
	EVIDENCE_IO_READ,
	EVIDENCE_IO_WRITE,
	EVIDENCE_IO_DISK_READ,
	EVIDENCE_IO_DISK_WRITE,
	EVIDENCE_IO_FIELDS,
};

/* Of sockets (net.bpf.c). */
enum {
	EVIDENCE_NET_CONNECTS,
	EVIDENCE_NET_ACCEPTS,
	EVIDENCE_NET_SENT,
	EVIDENCE_NET_RECEIVED,
	EVIDENCE_NET_SEGMENTS_SENT,
	EVIDENCE_NET_SEGMENTS_RECEIVED,
	EVIDENCE_NET_RETRANSMISSIONS,
	EVIDENCE_NET_RTT, /* ns, the sum of ... */
	EVIDENCE_NET_RTT_SAMPLES,
	EVIDENCE_NET_UDP_SENT,
	EVIDENCE_NET_UDP_RECEIVED,
	EVIDENCE_NET_UDP_PACKETS_SENT,
	EVIDENCE_NET_UDP_PACKETS_RECEIVED,
	EVIDENCE_NET_FIELDS,
};

/* Locks of the kernel (within.bpf.c): spinlocks; mutexes; all others that a thread sleeps for. */
enum {
	EVIDENCE_LOCK_SPIN,
	EVIDENCE_LOCK_MUTEX,
	EVIDENCE_LOCK_RWSEM,
	EVIDENCE_LOCKS,
};

/* What a thread does within the kernel. */
enum {
	EVIDENCE_WITHIN_OPENS,
	EVIDENCE_WITHIN_READS, /* requests to devices */
	EVIDENCE_WITHIN_READ_NS,
	EVIDENCE_WITHIN_WRITES,
	EVIDENCE_WITHIN_WRITE_NS,
	EVIDENCE_WITHIN_LOCKS, /* two for each kind of lock: waits, ns */
	EVIDENCE_WITHIN_FIELDS = EVIDENCE_WITHIN_LOCKS + 2 * EVIDENCE_LOCKS,
};

/* The page cache (cache.bpf.c), in pages. */
enum {
	EVIDENCE_CACHE_READ,   /* that reads took from it */
	EVIDENCE_CACHE_MISSED, /* ... and that were not there yet */
	EVIDENCE_CACHE_ADDED,
	EVIDENCE_CACHE_FIELDS,
};

#define EVIDENCE_ROWS	   16384 /* threads at one time, and row 0 */
#define EVIDENCE_CALLS	   1024	 /* system calls that have a class; a power of two */
#define EVIDENCE_SLOTS	   8	 /* futexes of a thread that its row holds; a power of two */
#define EVIDENCE_FUTEXES   4096	 /* addresses that are distinguished, and 0: all others */
#define EVIDENCE_STACK	   1024	 /* bytes of a stack that are kept */
#define EVIDENCE_CHUNK	   256	 /* ... of which as many of these as can be read */
#define EVIDENCE_BY_FILE   0x80	 /* a class: NETWORK if the first argument is a socket */
#define EVIDENCE_RESTARTED 0x81	 /* ... restart_syscall(2): a sleep that goes on after a stop */
#define EVIDENCE_SEVERAL   0x82	 /* ... futex_waitv(2): FUTEX, of more than one address */
#define EVIDENCE_MODE_OFF  0
#define EVIDENCE_MODE_NS   1 /* the iterator: learn the pid namespace of this task */
#define EVIDENCE_MODE_ADD  2 /* ... watch this task */
#define EVIDENCE_MODE_NOW  3 /* ... read what the kernel counts itself, of watched tasks */

/*
 * The waits of a thread for one futex. What a row has no slot for any more is added to the entry of
 * the address, struct evidence_entry: so the time for an address is that of its entry and of the
 * slots with its number.
 */
struct evidence_slot {
	__u64 addr; /* 0: a free slot, or one of waits without an address */
	__u64 ns;
	__u32 entry, waits;
};

struct evidence_entry {
	__u64 addr;
	__u32 tgid; /* in the loader's namespace */
	__u32 unused;
	__u64 ns, waits;
};

/* How a thread came to wait for the address of the same number, as of some wait. */
struct evidence_stack {
	__u32 seq; /* odd: a change is in progress; 0: there is none */
	__u32 size;
	__u64 ip, sp, bp, bx, r12, r13, r14, r15;
	__u8 bytes[EVIDENCE_STACK]; /* from sp on, `size` of them */
};

/* A wait for a lock of the kernel, in progress. */
struct evidence_lock {
	__u64 addr;  /* 0: none */
	__u64 since; /* 0: the wait is not counted */
};

/* The last read by way of the page cache: of the pages `from` to `to` of a file. */
struct evidence_read {
	__u64 file, call; /* its mapping; call 0: there was none */
	__u64 from, to;
	__u64 weight; /* 0: it is not counted */
};

/*
 * From the switch away from a thread to the switch to it: its time in one of the states off the
 * processor, and in the run queue. In progress in a row; one that has ended is an event.
 */
struct evidence_off {
	__u64 ns, queue_ns;
	__u64 futex; /* address; 0: none, or several */
	__u32 state; /* RUN_QUEUE: the thread could run all the time */
	__u32 flags;
};
#define EVIDENCE_OFF_CUT   1 /* it began before the thread was watched */
#define EVIDENCE_OFF_BIRTH 2 /* the thread is new */

/* What was not put into the rings, by state: pauses and their time. */
struct evidence_unrecorded {
	__u64 lost; /* there was no room; the rest was left out on purpose */
	__u64 pauses[EVIDENCE_STATES], ns[EVIDENCE_STATES];
};

/*
 * Events are in one ring for each processor: the program that writes has its processor to itself.
 * The reader sets `tail`.
 */
struct evidence_ring {
	__u64 head, tail; /* numbers of events, of all times */
	__u64 unused[6];  /* a cache line */
};

struct evidence_event {
	__u64 at;     /* CLOCK_MONOTONIC: the switch to the thread */
	__u64 began;  /* of its row: with tid, distinguishes threads */
	__u64 number; /* of the thread's pauses, from 0 */
	__u32 tid, tgid;
	__u32 waker, unused; /* of a futex: tid of a watched thread; 0: another one, or none */
	struct evidence_off pause;
	__u64 name[2]; /* of the thread, as bytes */
};

struct evidence_row {
	__u32 seq; /* odd: a change is in progress */
	__u32 tid, tgid;
	__u32 state, cpu;
	__u32 slot;	    /* of the last wait for a futex */
	__u64 began, since; /* CLOCK_MONOTONIC; since 0: nothing is known yet */
	__u64 ns[EVIDENCE_STATES], entered[EVIDENCE_STATES];
	__u64 voluntary, involuntary, wakeups, migrations;
	__u64 minor, major;		/* page faults, as of the last look */
	__u64 minor_first, major_first; /* ... when the thread was first seen */
	__u64 io[EVIDENCE_IO_FIELDS], io_first[EVIDENCE_IO_FIELDS];
	/* Changed by the thread itself, and at the end of requests to devices, outside of seq. */
	__u64 net[EVIDENCE_NET_FIELDS], within[EVIDENCE_WITHIN_FIELDS];
	__u64 cache[EVIDENCE_CACHE_FIELDS];
	struct evidence_read read;
	struct evidence_lock lock[EVIDENCE_LOCKS];
	__u64 exec_id; /* of the program that the addresses are of */
	struct evidence_slot futex[EVIDENCE_SLOTS];
	/* Set only where the program records pauses. */
	struct evidence_off pause;
	__u64 pauses; /* that have ended */
	__u32 waker, unused;
	struct evidence_unrecorded unrecorded;
};

struct evidence_control {
	/* Set by the loader. */
	__u32 mode, children;
	__u32 sample; /* one of so many frequent events is counted, as so many; 0: each */
	__u32 page_shift;
	struct {
		__u32 read, readv, pread, preadv, sendfile; /* numbers of system calls */
	} call;
	struct {
		__u64 futex, poll, nanosleep; /* what the kernel calls to go on with one */
	} restart;
	__u8 class_of[EVIDENCE_CALLS];
	/* Set by the program. */
	__u32 ns_level, next_row;
	__u32 has_io, unused; /* the kernel keeps that account */
	__u64 ns_own;
	__u64 threads_lost; /* there was no row for them */
	/* Unequal: the counters of a thread are moving to row 0. */
	__u64 folds_begun, folds_done;
	/* The same of a slot that moves to its entry. */
	__u64 moves_begun, moves_done;
	__u32 next_futex;
	__u32 ring_size; /* events of each ring, a power of two; set by the loader */
};

#endif
