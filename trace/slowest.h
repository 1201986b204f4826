/* SPDX-License-Identifier: MIT */
#ifndef TRACE_SLOWEST_H
#define TRACE_SLOWEST_H

#include "sum.h"

/*
 * The slowest calls of a sum: as many as its options ask for, in s->slow, a heap until
 * slowest_sort() puts the slowest first.
 *
 * slowest_add() copies what the span borrows. The call has no caller yet: s->thread counts it among
 * its orphans.
 */
void slowest_add(struct sum *s, struct sum_thread *t, const struct trace_span *span, uint64_t own,
		 unsigned int lane);
void slowest_sort(struct sum *s);
void slowest_free(struct sum_slow *slow); /* what one entry owns */

#endif
