/* SPDX-License-Identifier: MIT */
#include "page-stacks.h"

#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "src/base/must.h"

struct page_stacks {
	struct page *page;
	uint32_t *offer;    /* a copy of the list in the front */
	uint64_t *taken_ns; /* of each place: since when a thread has it; 0: none has */
	uint64_t offered, taken;
	uint64_t lost;
};

static struct sb_page_stacks *front(const struct page_stacks *s)
{
	return (struct sb_page_stacks *)((char *)s->page->hdr + s->page->lay.stack_list_off);
}

static struct sb_page_stacks_taken *rear(const struct page_stacks *s)
{
	return (struct sb_page_stacks_taken *)((char *)s->page->hdr + s->page->lay.stacks_off);
}

static const struct sb_page_stack *place_at(const struct page_stacks *s, uint32_t number)
{
	return (const void *)((const char *)(rear(s) + 1) +
			      (size_t)number * s->page->lay.stack_size);
}

static void offer(struct page_stacks *s, uint32_t number)
{
	uint32_t at = (uint32_t)(s->offered & (s->page->lay.stacks - 1));

	s->taken_ns[number] = 0;
	s->offer[at] = front(s)->slot[at] = number;
	__atomic_store_n(&front(s)->offered, ++s->offered, __ATOMIC_RELEASE);
}

struct page_stacks *page_stacks_open(struct page *page)
{
	struct page_stacks *s;
	uint32_t n = page->lay.stacks;

	if (!n)
		return NULL;
	s = must_calloc(1, sizeof(*s));
	s->page = page;
	s->offer = must_calloc(n, sizeof(*s->offer));
	s->taken_ns = must_calloc(n, sizeof(*s->taken_ns));
	for (uint32_t i = 0; i < n; i++)
		offer(s, i);
	return s;
}

void page_stacks_free(struct page_stacks *s)
{
	if (!s)
		return;
	free(s->offer);
	free(s->taken_ns);
	free(s);
}

size_t page_stacks_size(const struct page_stacks *s)
{
	return s->page->lay.stack_size;
}

void page_stacks_find(struct page_stacks *s)
{
	uint64_t taken = __atomic_load_n(&rear(s)->taken, __ATOMIC_ACQUIRE), now = clock_ns();

	if (taken > s->offered)
		taken = s->offered;
	while (s->taken < taken)
		s->taken_ns[s->offer[s->taken++ & (s->page->lay.stacks - 1)]] = now;
}

const uint64_t *page_stack_frames(const struct sb_page_stack *stack)
{
	return stack->word + stack->size / sizeof(*stack->word);
}

static bool is_whole(const struct sb_page_stack *stack, uint64_t check)
{
	const uint64_t *frames = page_stack_frames(stack);
	uint64_t sum = stack->start + stack->sp;

	for (uint32_t i = 0; i < stack->size / sizeof(*stack->word); i++)
		sum += stack->word[i];
	for (uint32_t i = 0; i < stack->frames / sizeof(*frames); i++)
		sum += frames[i];
	sum += stack->frames | (uint64_t)stack->frames_end << 32;
	return sum == check;
}

bool page_stacks_take(struct page_stacks *s, const struct sb_page_more *more, uint64_t owner,
		      uint64_t calls_off, uint64_t start, struct sb_page_stack *to)
{
	const size_t most = s->page->lay.stack_size - sizeof(*to) - SB_PAGE_FRAMES;
	const struct sb_page_stack *place;
	uint32_t number;
	bool fits;

	if (!more->value[0] || more->value[0] > s->page->lay.stacks) {
		s->lost++;
		return false;
	}
	/* The event may have been completed since the last look at what is taken. */
	if (!s->taken_ns[more->value[0] - 1])
		page_stacks_find(s);
	if (!s->taken_ns[more->value[0] - 1]) {
		s->lost++;
		return false;
	}
	number = (uint32_t)more->value[0] - 1;
	place = place_at(s, number);
	memcpy(to, place, sizeof(*to));
	if (to->owner != owner || to->calls_off != calls_off || to->start != start) {
		s->lost++;
		return false;
	}
	fits = to->size <= most && to->size % 8 == 0 && to->frames <= SB_PAGE_FRAMES &&
	       to->frames % 8 == 0;
	if (fits) {
		memcpy(to->word, place->word, to->size);
		memcpy((char *)to->word + to->size, (const char *)place->word + most, to->frames);
	}
	offer(s, number);
	if (fits && is_whole(to, more->value[1]))
		return true;
	s->lost++;
	return false;
}

void page_stacks_reclaim(struct page_stacks *s, uint64_t age_ns)
{
	uint64_t now = clock_ns();

	for (uint32_t i = 0; i < s->page->lay.stacks; i++)
		if (s->taken_ns[i] && now - s->taken_ns[i] >= age_ns)
			offer(s, i);
}

uint64_t page_stacks_lost(const struct page_stacks *s)
{
	return s->lost;
}
