/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_LOCKORDER_H
#define SB_TRACE_LOCKORDER_H

#include <stdbool.h>
#include <stddef.h>
#include "event.h"

/*
 * The orders in which threads take locks, by the calls that take and release them. Each thread has
 * the set of locks that it holds; taking a lock makes an order from each lock of the set to it.
 * Orders that lead back to where they began are a cycle: threads that take them at the same time
 * may wait for each other for good, whether they ever did or not.
 *
 * No cycle is
 * - one whose orders are all taken under one further lock, which lets one thread in at a time;
 * - one through a lock that is read there, and read again by the thread that it would wait for.
 * A call that gives up (LOCK_TRY) waits for nothing: no order leads to its lock, but from it.
 *
 * A lock is an address of a process until LOCK_FORGET, which makes and ends a lock there, or until
 * the process runs another program. What is between two of these is a lock of its own.
 *
 * The set is only as good as the calls are complete. So
 * - of a lock that a thread released without having taken it, after any thread had taken it in the
 *   trace, no order begins: its holder is not known (`odd`), and so of one that two threads held at
 *   the same time, as far as the trace knows;
 * - nor of a lock that was never released by its holder: its release may not be in the trace
 *   (`unreleased`);
 * - a thread holds nothing any more after a release whose lock is not known;
 * - where any call may be missing, lockorder_finish() takes the reason, and finds nothing.
 *
 *	struct lockorder *o = lockorder_new();
 *	lockorder_process(o, pid);		a process is declared, or runs another program
 *	lockorder_call(o, op, pid, span);	each call; of a thread, in the order of their ends
 *	lockorder_finish(o, NULL);		once, before its cycles are read
 *	lockorder_free(o);
 *
 * Values of a call: "lock", the address; "name", of the object there, or unknown; "at", where it
 * was called; "result", 0 or EOWNERDEAD: it has the lock. Without "at", the innermost caller of its
 * stack is taken.
 */
enum lock_op {
	LOCK_NONE,
	LOCK_TAKE,  /* waits as long as it takes */
	LOCK_SHARE, /* ... with others that share it: a reader */
	LOCK_TRY,   /* gives up, at once or after some time */
	LOCK_TRY_SHARE,
	LOCK_RELEASE,
	LOCK_WAIT,   /* releases it, waits for something else and takes it again */
	LOCK_FORGET, /* makes or destroys it */
};

enum { LOCKORDER_LENGTH = 6 /* locks of a cycle at most */ };

/* One order: a thread held a lock and took another one. Strings: NULL, unknown. */
struct lockorder_step {
	uint64_t held, taken; /* addresses */
	const char *held_name, *taken_name;
	const char *held_at, *taken_at; /* where each was taken */
	bool held_shared, taken_shared;
	uint64_t times, first_ns, last_ns; /* when the second was taken; CLOCK_MONOTONIC */
	uint32_t thread;		   /* the first that did */
	bool several;			   /* further ones did, too */
};

/* step[i].taken is the next one's held, that of the last one the first one's. */
struct lockorder_cycle {
	int32_t pid;
	uint32_t n;
	struct lockorder_step step[LOCKORDER_LENGTH];
	bool one_thread; /* one thread alone took all of these orders */
	uint64_t alike;	 /* further cycles of other locks, taken at the same places */
};

struct lockorder {
	uint64_t calls;		  /* with a known lock */
	uint64_t unknown;	  /* without, or of a thread that is not known: not used */
	size_t locks, orders;	  /* different ones */
	uint64_t odd, unreleased; /* locks, see above */
	uint64_t crossed;	  /* orders seen before and after a LOCK_FORGET: not used */
	uint64_t left_out;	  /* locks, orders and holders for which there was no room */
	bool unsearched;	  /* there may be more cycles: the search took too long */
	const char *missing;	  /* as lockorder_finish() was told */
	struct lockorder_cycle
		*cycle; /* at most 64: those of several threads, the shortest, the first */
	size_t n_cycles;
	uint64_t cycles_left_out;      /* further ones */
	struct lockorder_graph *graph; /* inner */
};

struct lockorder *lockorder_new(void);
void lockorder_process(struct lockorder *o, int32_t pid);
/* known: the thread's id is. Else its track may be that of several threads. */
void lockorder_call(struct lockorder *o, enum lock_op op, int32_t pid, bool known,
		    const struct trace_span *span);
/* missing: why calls may be missing, borrowed; NULL: none is. */
void lockorder_finish(struct lockorder *o, const char *missing);
void lockorder_free(struct lockorder *o); /* NULL is harmless */

#endif
