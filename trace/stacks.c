/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

enum { NODES_MAX = 1 << 20, SIBLINGS_MAX = 1024 };

uint32_t stacks_new(struct stacks *stacks, uint32_t key, uint64_t own_ns)
{
	uint32_t i = stacks->free;

	if (i) {
		stacks->free = stacks->node[i].next;
	} else {
		if (stacks->n >= NODES_MAX) {
			stacks->lost_ns += own_ns;
			return 0;
		}
		if (stacks->n + 1 >= stacks->room) {
			stacks->room = stacks->room ? stacks->room * 2 : 256;
			stacks->node = must_realloc(stacks->node,
						    stacks->room * sizeof(*stacks->node));
		}
		i = (uint32_t)++stacks->n;
	}
	stacks->node[i] = (struct stacks_node){ .key = key, .n = 1, .own_ns = own_ns };
	return i;
}

static void release(struct stacks *stacks, uint32_t i)
{
	stacks->node[i].next = stacks->free;
	stacks->free = i;
}

/* The sibling of that key, brought to the front: the same ones come again and again. 0: none. */
static uint32_t find(struct stacks *stacks, uint32_t *list, uint32_t key, unsigned int *seen)
{
	uint32_t before = 0, i = *list;

	for (*seen = 0; i && stacks->node[i].key != key; i = stacks->node[i].next, ++*seen)
		before = i;
	if (i && before) {
		stacks->node[before].next = stacks->node[i].next;
		stacks->node[i].next = *list;
		*list = i;
	}
	return i;
}

/* Joined by hand, as deep as stacks are: nodes of which the children are still to be joined. They
 * are a list by `next` of the nodes that are given up. */
static void give_up(struct stacks *stacks, uint32_t into, uint32_t from, uint32_t *later)
{
	struct stacks_node *a = &stacks->node[into], *b = &stacks->node[from];

	a->own_ns += b->own_ns;
	a->n = a->n + b->n < a->n ? UINT32_MAX : a->n + b->n;
	b->key = into; /* remembered for later */
	b->next = *later;
	*later = from;
}

static void join_list(struct stacks *stacks, uint32_t *into, uint32_t from, uint32_t *later)
{
	uint32_t next, same;
	unsigned int seen;

	for (; from; from = next) {
		next = stacks->node[from].next;
		same = find(stacks, into, stacks->node[from].key, &seen);
		if (!same && seen >= SIBLINGS_MAX) {
			stacks->node[from].key = STACKS_OTHERS;
			same = find(stacks, into, STACKS_OTHERS, &seen);
		}
		if (same) {
			give_up(stacks, same, from, later);
		} else {
			stacks->node[from].next = *into;
			*into = from;
		}
	}
}

void stacks_join(struct stacks *stacks, uint32_t *into, uint32_t from)
{
	uint32_t later = 0;

	join_list(stacks, into, from, &later);
	while (later) {
		uint32_t i = later, to = stacks->node[i].key, children = stacks->node[i].child;

		later = stacks->node[i].next;
		release(stacks, i);
		join_list(stacks, &stacks->node[to].child, children, &later);
	}
}

void stacks_take(struct stacks *stacks, uint32_t node, uint32_t list)
{
	if (node) {
		stacks_join(stacks, &stacks->node[node].child, list);
		return;
	}
	/* No room for the caller: its calls are lost with it. */
	while (list) {
		uint32_t i = list, child = stacks->node[i].child, last = child;

		while (last && stacks->node[last].next)
			last = stacks->node[last].next;
		list = stacks->node[i].next;
		if (child) {
			stacks->node[last].next = list;
			list = child;
		}
		stacks->lost_ns += stacks->node[i].own_ns;
		release(stacks, i);
	}
}

/* ---- totals ---- */

/* The order in which nodes are met, parents first. The caller frees. */
static uint32_t *parents_first(const struct stacks *stacks, uint32_t list, size_t *n)
{
	uint32_t *order = must_calloc(stacks->n + 1, sizeof(*order));

	*n = 0;
	for (uint32_t i = list; i; i = stacks->node[i].next)
		order[(*n)++] = i;
	for (size_t at = 0; at < *n; at++)
		for (uint32_t i = stacks->node[order[at]].child; i; i = stacks->node[i].next)
			order[(*n)++] = i;
	return order;
}

static int by_size(const void *a, const void *b, void *ctx)
{
	const struct stacks *stacks = ctx;
	const struct stacks_node *x = &stacks->node[*(const uint32_t *)a],
				 *y = &stacks->node[*(const uint32_t *)b];

	if (x->all_ns != y->all_ns)
		return x->all_ns < y->all_ns ? 1 : -1;
	return (x->key > y->key) - (x->key < y->key);
}

static uint64_t sort_siblings(struct stacks *stacks, uint32_t *list, uint32_t *room)
{
	uint64_t sum = 0;
	size_t n = 0;

	for (uint32_t i = *list; i; i = stacks->node[i].next) {
		room[n++] = i;
		sum += stacks->node[i].all_ns;
	}
	qsort_r(room, n, sizeof(*room), by_size, stacks);
	*list = n ? room[0] : 0;
	for (size_t i = 0; i < n; i++)
		stacks->node[room[i]].next = i + 1 < n ? room[i + 1] : 0;
	return sum;
}

uint64_t stacks_total(struct stacks *stacks, uint32_t *list)
{
	uint32_t *room = must_calloc(stacks->n + 1, sizeof(*room)), *order;
	uint64_t sum;
	size_t n;

	order = parents_first(stacks, *list, &n);
	while (n--) {
		struct stacks_node *node = &stacks->node[order[n]];

		node->all_ns = node->own_ns + sort_siblings(stacks, &node->child, room);
	}
	sum = sort_siblings(stacks, list, room);
	free(order);
	free(room);
	return sum;
}

void stacks_free(struct stacks *stacks)
{
	free(stacks->node);
	*stacks = (struct stacks){ 0 };
}
