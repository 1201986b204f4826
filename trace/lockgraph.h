/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_LOCKGRAPH_H
#define SB_TRACE_LOCKGRAPH_H

#include "idmap.h"
#include "lockorder.h"

/* Inside of lockorder.h: what lockorder.c collects and lockcycle.c searches. */
enum { LOCKS_HELD = 32, LOCKORDER_CYCLES = 64 };

struct lock {
	uint64_t address;
	uint32_t space;	      /* the program image of a process */
	uint32_t name;	      /* a text's number; 0: unknown */
	uint64_t taken_ns;    /* for the first time by a known thread; UINT64_MAX: never */
	uint64_t stranger_ns; /* released for the last time by a thread that did not hold it */
	bool released;	      /* by its holder */
	bool odd;	      /* two threads held it at the same time, as far as is known */
	uint32_t last;	      /* the thread that took it last, and not to share it, and when */
	uint64_t last_ns;
	uint64_t *forget; /* the times at which a lock ended there, sorted in the end */
	uint32_t n_forget;
};

struct lock_held {
	uint32_t lock, at;   /* numbers; at: of a text */
	uint32_t depth, age; /* age: so many locks had been forgotten there */
	bool shared;
	bool maybe; /* what its call returned is not known: no order begins here */
	uint64_t ns;
};

struct lock_thread {
	uint32_t n;
	uint64_t lost; /* holders without room, to be released */
	struct lock_held held[LOCKS_HELD];
};

/* An order as it was taken at two places, under the same further locks. */
struct lock_edge {
	struct lock_edge_key {
		uint32_t from, to;	 /* locks */
		uint32_t from_at, to_at; /* texts */
		uint32_t gates;		 /* a set: the further locks that were held */
		uint32_t from_age,
			to_age; /* so many locks had been forgotten there when it was read */
		uint8_t from_shared, to_shared, pad[2];
	} key;
	uint32_t thread;
	bool several, used;
	uint64_t times, first_ns, last_ns;
	uint64_t held_ns;	     /* the first was taken, at the earliest */
	uint32_t from_node, to_node; /* lockcycle.c: a lock between two that are forgotten */
	uint32_t next;		     /* lockcycle.c: of the same from_node; an edge plus 1 */
};

/* A set of held locks, sorted: twice their numbers, 1 more where they are shared. */
struct lock_gates {
	uint32_t n;
	uint32_t *lock;
};

/* Numbers, plus 1, by hash. */
struct lock_table {
	uint32_t *slot;
	size_t slots, n;
};

struct lockorder_graph {
	struct lock *lock;
	struct lock_edge *edge;
	struct lock_gates *gates; /* [0]: none */
	char **text;		  /* by number - 1 */
	size_t n_locks, n_edges, n_gates, n_texts, n_forgets;
	int32_t *space; /* pids */
	size_t n_spaces;
	struct lock_table by_lock, by_edge, by_gates, by_text;
	struct idmap space_of, thread_of; /* by pid: a space plus 1; by id: a thread plus 1 */
	struct lock_thread *thread;
	size_t n_threads;
};

void lockcycle_find(struct lockorder *o);

#endif
