/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_NEST_H
#define SB_TRACE_NEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The calls of one thread, put into each other as they come. A call comes when it has ended, so
 * after the calls made in it: those are the last finished ones that began no earlier. What no later
 * call has taken up yet is a root. Roots are apart from each other and in the order of time.
 *
 * The number of roots is bounded: at `most` of them, half of the gaps, the shortest, are closed,
 * and the roots beside them become one group. A later call that begins within a group, so between
 * calls that are no longer known one by one, takes a part of it by time: NEST_GUESSED.
 *
 * Ends: the cost of measurement is off the durations, so a call may seem to end before the last
 * call made in it. nest_fit() looks at starts and at the order of arrival only; the caller gives a
 * root an end that covers its calls.
 */
struct nest_root {
	uint64_t start, end; /* ns; end covers all calls within */
	uint64_t dur;	     /* sum of the durations: of the call, or of a group's calls */
	uint64_t covered;    /* of end - start, not in gaps of a group */
	uint32_t n;	     /* roots of a group; 1: a call */
	uint32_t tree;	     /* for the user of the nest; 0: none */
	/* Likewise, added up and shared as n is: launches in it, and those of no Python function
	 * yet. */
	uint64_t launches, owed;
};

struct nest {
	struct nest_root *root;
	size_t n, room;
	uint64_t closed; /* the longest gap that was closed, ns */
};

enum nest_fit {
	NEST_FITS,    /* behind all roots that it does not hold */
	NEST_GUESSED, /* it begins within a group */
	NEST_CROSSES, /* it begins within a call that had ended before: these two are not nested */
};

/* What a call that begins at start takes up: root[*first] to the last. */
enum nest_fit nest_fit(const struct nest *nest, uint64_t start, size_t *first);

/* Cuts the group before root[first], in which the call begins, by time, and gives what the call
 * takes as a group; adds nothing. */
struct nest_root nest_part(struct nest *nest, size_t first, uint64_t start);

/* Replaces root[first] and all behind it. */
void nest_put(struct nest *nest, size_t first, const struct nest_root *root);

/* Closes gaps where `most` roots are reached. merge(into, from, ctx), may be NULL, joins the trees
 * of two neighbours. */
typedef void nest_merge_fn(struct nest_root *into, const struct nest_root *from, void *ctx);
void nest_bound(struct nest *nest, size_t most, nest_merge_fn *merge, void *ctx);

void nest_free(struct nest *nest);

#endif
