/* SPDX-License-Identifier: MIT */
/*
 * Recording a call: what stub-code.S does for native functions, for those of Python. A thread uses
 * one chunk for both. See struct sb_page_trace.
 */
#include "page.h"

#define MIX 0x9e3779b97f4a7c15ull /* as in stub-code.S */

enum { GROUP = 4, GROUP_BITS = 10 };
_Static_assert(SB_PAGE_CALL_THREADS == GROUP << GROUP_BITS, "groups of threads");

static const struct sb_page_trace *trace_of(const struct page *page)
{
	return (const void *)(page->base + page->trace_off);
}

static struct sb_page_taken *taken_of(const struct page *page)
{
	return (void *)(page->base + page->chunks_off);
}

static struct sb_page_chunk *chunk_of(const struct page *page, uint64_t number)
{
	return (struct sb_page_chunk *)(taken_of(page) + 1) + (number & (page->chunks - 1));
}

/* The thread's struct, or one that is free; NULL: there is none. */
static struct sb_page_thread *thread_of(const struct page *page, uint64_t calls_off, uint64_t owner)
{
	struct sb_page_calls *calls = (void *)(page->base + page->calls_off + calls_off);
	struct sb_page_thread *group = &calls->thread[(owner * MIX >> (64 - GROUP_BITS)) * GROUP];

	for (int i = 0; i < GROUP; i++)
		if (__atomic_load_n(&group[i].owner, __ATOMIC_RELAXED) == owner)
			return &group[i];
	for (int i = 0; i < 2 * GROUP; i++) {
		struct sb_page_thread *t = &group[i % GROUP];
		uint64_t was = __atomic_load_n(&t->owner, __ATOMIC_RELAXED);

		if (was && (i < GROUP || __atomic_load_n(&t->call, __ATOMIC_RELAXED)))
			continue;
		if (__atomic_compare_exchange_n(&t->owner, &was, owner, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return t;
	}
	return NULL;
}

static void count(uint64_t *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

/* Takes a free chunk for the thread; NULL: none is free. */
static struct sb_page_chunk *take(const struct page *page, struct sb_page_thread *thread,
				  uint64_t owner, uint64_t calls_off, uint64_t had)
{
	const struct sb_page_trace *trace = trace_of(page);
	uint64_t *taken = &taken_of(page)->taken, n = __atomic_load_n(taken, __ATOMIC_RELAXED);
	struct sb_page_chunk *chunk;
	uint32_t number;

	do
		if (n >= __atomic_load_n(&trace->offered, __ATOMIC_ACQUIRE))
			return NULL;
	while (!__atomic_compare_exchange_n(taken, &n, n + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	number = trace->chunk[n & (page->chunks - 1)] & (page->chunks - 1);
	chunk = chunk_of(page, number);
	chunk->calls_off = calls_off;
	chunk->owner = owner;
	if (!__atomic_compare_exchange_n(&thread->chunk, &had, number + 1ull, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		/* A signal handler took one meanwhile: this one serves once. */
		chunk->limit = 1;
		__atomic_store_n(&chunk->used, SB_PAGE_EVENTS - 1, __ATOMIC_RELAXED);
	}
	return chunk;
}

/* Reserves a place in the thread's chunk; NULL: none is free. */
static struct sb_page_event *reserve(const struct page *page, struct sb_page_thread *thread,
				     uint64_t owner, uint64_t calls_off)
{
	uint64_t had = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED), at;
	struct sb_page_chunk *chunk = had ? chunk_of(page, had - 1) : NULL;

	if (!chunk || __atomic_load_n(&chunk->owner, __ATOMIC_RELAXED) != owner)
		chunk = take(page, thread, owner, calls_off, had);
	if (!chunk)
		return NULL;
	at = __atomic_fetch_add(&chunk->used, 1, __ATOMIC_RELAXED);
	if (at >= SB_PAGE_EVENTS)
		return NULL;
	if (at == SB_PAGE_EVENTS - 1) {
		/* Behind its last event a chunk may be sbinject's at once. */
		if (chunk->limit == 1)
			return &chunk->event[0];
		__atomic_compare_exchange_n(&thread->chunk, &had, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	}
	if (__atomic_load_n(&chunk->owner, __ATOMIC_RELAXED) == owner)
		return &chunk->event[at];
	__atomic_store_n(&chunk->event[at].ticks, UINT64_MAX, __ATOMIC_RELEASE);
	return NULL;
}

void page_record(const struct page *page, uint64_t thread, uint32_t place, uint64_t start,
		 uint64_t ticks)
{
	uint64_t calls_off = __atomic_load_n(&page->record->calls_off, __ATOMIC_RELAXED);
	struct sb_page_event *event = NULL;
	struct sb_page_thread *t;

	if (!page->chunks)
		return;
	if (!calls_off || calls_off > page->last_calls ||
	    calls_off % sizeof(struct sb_page_calls)) {
		count(&taken_of(page)->unseen);
		return;
	}
	if (ticks + 1 < trace_of(page)->min_ticks) {
		count(&taken_of(page)->shorter);
		return;
	}
	t = thread_of(page, calls_off, ~thread);
	if (t)
		event = reserve(page, t, ~thread, calls_off);
	if (!event) {
		count(&taken_of(page)->lost);
		return;
	}
	event->start = start;
	event->function = place;
	event->kind = SB_EVENT_PYTHON;
	__atomic_store_n(&event->ticks, ticks + 1, __ATOMIC_RELEASE);
}
