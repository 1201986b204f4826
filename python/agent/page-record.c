/* SPDX-License-Identifier: MIT */
/*
 * Recording a call: what stub-code.S does for native functions, for those of Python. A thread uses
 * one chunk for both. See struct sb_page_trace.
 */
#include "page.h"

#define MIX 0x9e3779b97f4a7c15ull /* as in stub-code.S */

enum { GROUP = 4, GROUP_BITS = 10 };
_Static_assert(SB_PAGE_CALL_THREADS == GROUP << GROUP_BITS, "groups of threads");

/* The thread that writes, as its chunk says it. */
struct who {
	uint64_t owner, calls_off;
};

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

/*
 * Takes a free chunk for the thread; NULL: none is free. *once: a signal handler took one
 * meanwhile, and this one serves for the first n places alone.
 */
static struct sb_page_chunk *take(const struct page *page, struct sb_page_thread *thread,
				  const struct who *who, uint64_t had, uint64_t n, bool *once)
{
	const struct sb_page_trace *trace = trace_of(page);
	uint64_t *taken = &taken_of(page)->taken, at = __atomic_load_n(taken, __ATOMIC_RELAXED);
	struct sb_page_chunk *chunk;
	uint32_t number;

	do
		if (at >= __atomic_load_n(&trace->offered, __ATOMIC_ACQUIRE))
			return NULL;
	while (!__atomic_compare_exchange_n(taken, &at, at + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	number = trace->chunk[at & (page->chunks - 1)] & (page->chunks - 1);
	chunk = chunk_of(page, number);
	chunk->calls_off = who->calls_off;
	chunk->owner = who->owner;
	*once = !__atomic_compare_exchange_n(&thread->chunk, &had, number + 1ull, false,
					     __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (*once) {
		chunk->limit = n;
		__atomic_store_n(&chunk->used, SB_PAGE_EVENTS, __ATOMIC_RELAXED);
	}
	return chunk;
}

/* Those of n places that are in the chunk are none. */
static void void_places(struct sb_page_chunk *chunk, uint64_t at, uint64_t n)
{
	for (; n && at < SB_PAGE_EVENTS; n--)
		__atomic_store_n(&chunk->event[at++].ticks, UINT64_MAX, __ATOMIC_RELEASE);
}

/* Reserves n places in the thread's chunk; NULL: none is free. */
static struct sb_page_event *reserve(const struct page *page, struct sb_page_thread *thread,
				     const struct who *who, uint64_t n)
{
	for (int tries = 0; tries < 2; tries++) {
		uint64_t had = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED), at;
		struct sb_page_chunk *chunk = had ? chunk_of(page, had - 1) : NULL;
		bool once = false;

		if (!chunk || __atomic_load_n(&chunk->owner, __ATOMIC_RELAXED) != who->owner) {
			chunk = take(page, thread, who, had, n, &once);
			if (!chunk || once)
				return chunk ? &chunk->event[0] : NULL;
			had = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
		}
		at = __atomic_fetch_add(&chunk->used, n, __ATOMIC_RELAXED);
		/* Behind its last event a chunk may be sbinject's at once. */
		if (at < SB_PAGE_EVENTS && at + n >= SB_PAGE_EVENTS)
			__atomic_compare_exchange_n(&thread->chunk, &had, 0, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		if (at + n <= SB_PAGE_EVENTS &&
		    __atomic_load_n(&chunk->owner, __ATOMIC_RELAXED) == who->owner)
			return &chunk->event[at];
		void_places(chunk, at, n);
	}
	return NULL;
}

static bool is_short(const struct page *page, const struct who *who, uint64_t ticks)
{
	if (!who->calls_off || who->calls_off > page->last_calls ||
	    who->calls_off % sizeof(struct sb_page_calls)) {
		count(&taken_of(page)->unseen);
		return true;
	}
	if (ticks + 1 >= trace_of(page)->min_ticks)
		return false;
	count(&taken_of(page)->shorter);
	return true;
}

void page_record(const struct page *page, uint64_t thread, uint32_t place, uint64_t own,
		 uint64_t start, uint64_t ticks)
{
	const struct who who = {
		.owner = ~thread,
		.calls_off = __atomic_load_n(&page->record->calls_off, __ATOMIC_RELAXED),
	};
	const bool stack = page->stacks && page->record->python.version;
	struct sb_page_event *event = NULL;
	struct sb_page_thread *t;

	if (!page->chunks || is_short(page, &who, ticks))
		return;
	t = thread_of(page, who.calls_off, who.owner);
	if (t)
		event = reserve(page, t, &who, stack ? 2 : 1);
	if (!event) {
		count(&taken_of(page)->lost);
		return;
	}
	event->more = stack; /* before all else: a reader skips its places by it */
	event->known = stack ? SB_KNOWN_STACK : 0;
	event->start = start;
	event->function = place;
	event->kind = SB_EVENT_PYTHON;
	if (stack)
		page_stack(page, who.owner, who.calls_off, own, start, (void *)(event + 1));
	__atomic_store_n(&event->ticks, ticks + 1, __ATOMIC_RELEASE);
}
