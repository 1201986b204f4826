/* SPDX-License-Identifier: MIT */
/*
 * One table for three kinds of records of a thread: the cost of its timed calls so far, its depth
 * in each target, and the functions that it has called. Under the GIL; without one there are
 * several tables, rarely fewer than threads, each with a lock that its threads take. No call of the
 * interpreter is made under it, and no thread is stopped there by the interpreter.
 */
#include "span.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"

#define SPANS_MAX (1u << 20) /* entries; further calls are missed */

struct span {
	uint64_t thread;  /* 0: free */
	const void *what; /* a cell, by its number; a watch; the thread itself */
	uint32_t depth;
	uint64_t start;
	uint64_t lost; /* of a thread: ticks lost to timing; of a cell: the same at its start */
};

struct spans {
	struct span *entries;
	size_t mask, used;
	uint32_t locked;
} __attribute__((aligned(64)));

#define TABLES 64

static struct spans tables[TABLES]; /* only the first one, where there is a GIL */
static uint32_t epoch_now;

static const char thread_itself, thread_calls;

/*
 * The calls in progress of a thread, in the order in which they began. A call that is left behind
 * when an earlier one ends was left in another way.
 */
struct calls {
	size_t n, cap;
	struct call {
		const struct watch *w;
		uint64_t start, lost; /* as in struct span */
	} call[];
};

/* In the entry of thread_calls. NULL: none yet. */
static struct calls *calls_in(const struct span *s)
{
	return (struct calls *)(uintptr_t)s->start;
}

static void free_calls(struct spans *t)
{
	for (size_t i = 0; t->entries && i <= t->mask; i++)
		if (t->entries[i].thread && t->entries[i].what == &thread_calls)
			free(calls_in(&t->entries[i]));
}

uint32_t span_epoch(void)
{
	return epoch_now;
}

static struct spans *lock(struct spans *t)
{
	while (py.threads && __atomic_exchange_n(&t->locked, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&t->locked, __ATOMIC_RELAXED))
			cpu_relax();
	return t;
}

static struct spans *lock_thread(uint64_t thread)
{
	uint64_t i = (thread >> 6) * 0x9e3779b97f4a7c15ull >> 58;

	return lock(&tables[py.threads ? i : 0]);
}

static void unlock(struct spans *t)
{
	if (py.threads)
		__atomic_store_n(&t->locked, 0, __ATOMIC_RELEASE);
}

void span_reset(void)
{
	for (int i = 0; i < TABLES; i++) {
		struct spans *t = lock(&tables[i]);

		free_calls(t);
		free(t->entries);
		t->entries = NULL;
		t->mask = t->used = 0;
		unlock(t);
	}
	epoch_now++;
}

static struct span *slot_for(struct span *entries, size_t mask, uint64_t thread, const void *what)
{
	size_t i = ((thread >> 6) ^ (uint64_t)(uintptr_t)what) * 0x9e3779b97f4a7c15ull >> 32 & mask;

	while (entries[i].thread && (entries[i].thread != thread || entries[i].what != what))
		i = (i + 1) & mask;
	return &entries[i];
}

/* Space for so many more; earlier pointers to entries become invalid. */
static bool make_room(struct spans *t, size_t more)
{
	size_t size = t->entries ? t->mask + 1 : 256;
	struct span *entries;

	if (t->entries && (t->used + more) * 2 <= size)
		return true;
	while ((t->used + more) * 2 > size)
		size *= 2;
	entries = size <= SPANS_MAX ? calloc(size, sizeof(*entries)) : NULL;
	if (!entries)
		return false;
	for (size_t i = 0; t->entries && i <= t->mask; i++)
		if (t->entries[i].thread)
			*slot_for(entries, size - 1, t->entries[i].thread,
				  t->entries[i].what) = t->entries[i];
	free(t->entries);
	t->entries = entries;
	t->mask = size - 1;
	return true;
}

/* There must be space. */
static struct span *span_made(struct spans *t, uint64_t thread, const void *what)
{
	struct span *s = slot_for(t->entries, t->mask, thread, what);

	if (!s->thread) {
		*s = (struct span){ .thread = thread, .what = what };
		t->used++;
	}
	return s;
}

static const void *cell_key(uint32_t index)
{
	return (const void *)(uintptr_t)(index + 1); /* no address is as low */
}

/* The cell, if it is to time this thread's calls. */
static const struct sb_page_cell *asks(const struct watch_cell *c)
{
	const struct sb_page_cell *cell = page_cell(&agent.page, c->index);

	return cell && page_spans(cell) && hit_passes(&agent.page, cell) ? cell : NULL;
}

/* The sums that this thread's calls add to. */
static struct sb_page_span *sums_of(uint32_t index, uint64_t thread)
{
	const struct sb_page_cell *cell = page_cell(&agent.page, index);

	return cell ? page_span(&agent.page, cell, (uint32_t)(thread >> 12)) : NULL;
}

static void count_begun(uint32_t index, uint64_t thread)
{
	struct sb_page_span *sums = sums_of(index, thread);

	if (sums)
		__atomic_fetch_add(&sums->begun, 1, __ATOMIC_RELAXED);
}

static bool miss(const struct watch_cell *c, uint64_t thread)
{
	for (; c->index != CELL_NONE; c++)
		if (asks(c))
			count_begun(c->index, thread);
	return false;
}

/* Marks that this thread has called it, and returns whether it had before. */
static bool called_before(struct spans *t, uint64_t thread, const struct watch *w)
{
	struct span *s = span_made(t, thread, w);

	return s->depth++ > 0;
}

static size_t count_cells(const struct watch_cell *c)
{
	size_t n = 0;

	while (c[n].index != CELL_NONE)
		n++;
	return n;
}

/* Without memory for it the call is missed. */
static void push(struct spans *t, uint64_t thread, const struct watch *w, uint64_t lost)
{
	struct span *s = span_made(t, thread, &thread_calls);
	struct calls *calls = calls_in(s);

	if (!calls || calls->n == calls->cap) {
		size_t n = calls ? calls->n : 0, cap = n ? n * 2 : 64;
		struct calls *more = realloc(calls, sizeof(*more) + cap * sizeof(*more->call));

		if (!more)
			return;
		more->n = n;
		more->cap = cap;
		s->start = (uintptr_t)(calls = more);
	}
	calls->call[calls->n++] = (struct call){ w, cpu_ticks(), lost };
}

/* The place of the function's note; 0: it has none. */
static uint32_t place_of(const struct watch *w)
{
	for (const struct watch_cell *c = watch_cells(w); c->index != CELL_NONE; c++) {
		const uint64_t *note = __atomic_load_n(&c->note, __ATOMIC_RELAXED);

		if (note)
			return page_place(&agent.page, note);
	}
	return 0;
}

/*
 * False: no such call is in progress. It began before the function was watched or timed, or another
 * one of the thread has ended since that began before it (greenlets). It must not end the call that
 * it is in.
 */
static bool pop(const struct spans *t, uint64_t thread, const struct watch *w, uint64_t now)
{
	const struct span *s = slot_for(t->entries, t->mask, thread, &thread_calls);
	struct calls *calls = s->thread ? calls_in(s) : NULL;
	size_t n = calls ? calls->n : 0;
	uint64_t lost, less, own = 0;

	while (n && calls->call[n - 1].w != w)
		n--;
	if (!n)
		return false;
	calls->n = n - 1;
	if (!agent.page.chunks)
		return true;
	lost = slot_for(t->entries, t->mask, thread, &thread_itself)->lost;
	less = lost - calls->call[n - 1].lost + agent.cost_within;
	now -= calls->call[n - 1].start;
	if (py.hex >= 0x030c0000) /* before, its frame is gone when this is called */
		own = (uintptr_t)w->code;
	page_record(&agent.page, thread, place_of(w), own, calls->call[n - 1].start,
		    now > less ? now - less : 0);
	return true;
}

static bool begin(struct spans *t, uint64_t thread, const struct watch *w,
		  const struct watch_cell *c)
{
	uint64_t lost = span_made(t, thread, &thread_itself)->lost;
	bool any = false;

	for (; c->index != CELL_NONE; c++) {
		struct span *s;

		if (!asks(c))
			continue;
		s = span_made(t, thread, cell_key(c->index));
		any = true;
		if (s->depth++)
			continue;
		count_begun(c->index, thread);
		s->lost = lost;
		s->start = cpu_ticks();
	}
	if (any)
		push(t, thread, w, lost);
	return any;
}

bool span_enter(const struct watch *w, bool known)
{
	const struct watch_cell *cells = watch_cells(w);
	uint64_t thread = cpu_thread();
	struct spans *t = lock_thread(thread);
	bool any;

	if (!make_room(t, count_cells(cells) + 3) || (known && !called_before(t, thread, w)))
		any = miss(cells, thread);
	else
		any = begin(t, thread, w, cells);
	unlock(t);
	return any;
}

static void raise_to(uint64_t *figure, uint64_t value)
{
	uint64_t was = __atomic_load_n(figure, __ATOMIC_RELAXED);

	while (was < value && !__atomic_compare_exchange_n(figure, &was, value, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static uint32_t bucket_of(uint64_t ticks)
{
	uint32_t e, i;

	if (ticks < SB_PAGE_SPAN_STEPS)
		return (uint32_t)ticks;
	e = 63 - (uint32_t)__builtin_clzll(ticks);
	i = (e - 4) * SB_PAGE_SPAN_STEPS + (ticks >> (e - 5) & (SB_PAGE_SPAN_STEPS - 1));
	return i < SB_PAGE_SPAN_BUCKETS ? i : SB_PAGE_SPAN_BUCKETS - 1;
}

static void add(uint32_t index, uint64_t thread, int64_t measured)
{
	struct sb_page_span *sums = sums_of(index, thread);
	uint64_t ticks = measured > 0 ? (uint64_t)measured : 0;

	if (!sums)
		return;
	__atomic_fetch_add(&sums->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sums->ticks, ticks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sums->outer_ticks, ticks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sums->apart, 1, __ATOMIC_RELAXED);
	raise_to(&sums->most, ticks);
	raise_to(&sums->inv_least, ~ticks);
	__atomic_fetch_add(&sums->bucket[bucket_of(ticks)], 1, __ATOMIC_RELAXED);
}

static void end(const struct spans *t, uint64_t thread, const struct watch *w, uint64_t now)
{
	const struct watch_cell *c = watch_cells(w);
	struct span *self = slot_for(t->entries, t->mask, thread, &thread_itself), *s;
	bool any = false;

	if (!pop(t, thread, w, now))
		return;
	for (; c->index != CELL_NONE; c++) {
		s = slot_for(t->entries, t->mask, thread, cell_key(c->index));
		if (!s->thread || !s->depth)
			continue;
		any = true;
		if (--s->depth == 0)
			add(c->index, thread,
			    (int64_t)(now - s->start - (self->lost - s->lost) - agent.cost_within));
	}
	if (any)
		self->lost += agent.cost_span;
}

void span_leave(const struct watch *w)
{
	uint64_t now = cpu_ticks(), thread = cpu_thread();
	struct spans *t = lock_thread(thread);

	if (t->entries && agent.started)
		end(t, thread, w, now);
	unlock(t);
}
