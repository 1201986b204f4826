/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_STACKS_H
#define SB_TRACE_STACKS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Stacks of calls with the time that was spent in each, without the calls in it: a forest whose
 * nodes are the distinct stacks. Calls come after the calls made in them, so trees grow at their
 * roots: a call takes the trees of its calls as its children, joined by function. The number of
 * nodes is bounded; what has no room is in `lost_ns`. Among very many siblings new ones count as
 * STACKS_OTHERS.
 */
enum { STACKS_OTHERS = 0 };

struct stacks_node {
	uint32_t key;	      /* of a call: id * 2 + kind */
	uint32_t next, child; /* the next sibling, the first child; 0: none */
	uint32_t n;	      /* calls, at most UINT32_MAX */
	uint64_t own_ns;
	uint64_t all_ns; /* with the children; by stacks_total() */
};

struct stacks {
	struct stacks_node *node; /* [0] is not used */
	size_t n, room;
	uint32_t free;
	uint64_t lost_ns;
};

/* A call without children yet. 0: no room. */
uint32_t stacks_new(struct stacks *stacks, uint32_t key, uint64_t own_ns);
/* Joins the list `from` into the list *into. */
void stacks_join(struct stacks *stacks, uint32_t *into, uint32_t from);
/* Joins a list of trees into the children of a node; node 0: they are lost. */
void stacks_take(struct stacks *stacks, uint32_t node, uint32_t list);

/* Fills all_ns of a list and sorts siblings, the largest first. Returns the sum. */
uint64_t stacks_total(struct stacks *stacks, uint32_t *list);
void stacks_free(struct stacks *stacks);

#endif
