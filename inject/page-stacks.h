/* SPDX-License-Identifier: MIT */
#ifndef SB_PAGE_STACKS_H
#define SB_PAGE_STACKS_H

#include "page.h"

/*
 * sbinject's side of the places for stacks of recorded calls in one page (struct sb_page_stacks):
 * for page-trace.c, which reads the events. Nothing here stops a thread. What a place contains is
 * data from outside: it is copied before it is looked at, and then its size is within the place.
 *
 * One thread at a time uses a struct page_stacks.
 */
struct page_stacks;

/* NULL: the page has no places for stacks. */
struct page_stacks *page_stacks_open(struct page *page);
void page_stacks_free(struct page_stacks *s); /* NULL is harmless */

/* Bytes that page_stacks_take() writes at most. */
size_t page_stacks_size(const struct page_stacks *s);

/* Notes the places that threads have taken since. */
void page_stacks_find(struct page_stacks *s);

/*
 * Copies the stack of a call whose event ends with the place `more`, written by the thread `owner`
 * in a chunk of `calls_off`, and offers its place again. False, which counts as lost: it has none,
 * or what is there is not its own.
 */
bool page_stacks_take(struct page_stacks *s, const struct sb_page_more *more, uint64_t owner,
		      uint64_t calls_off, uint64_t start, struct sb_page_stack *to);

/* The frames of a stack that page_stacks_take() has copied: they directly follow its words. */
const uint64_t *page_stack_frames(const struct sb_page_stack *stack);

/*
 * Offers again what was taken so long ago and belongs to no event: of threads that have ended. A
 * thread that goes on writing there all the same spoils another stack, whose check fails.
 */
void page_stacks_reclaim(struct page_stacks *s, uint64_t age_ns);

/* Stacks that calls have lost so far. */
uint64_t page_stacks_lost(const struct page_stacks *s);

#endif
