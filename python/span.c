/* SPDX-License-Identifier: MIT */
/*
 * One table for three kinds of things to remember of a thread: what timed calls have cost it so
 * far, how deep it is in each target, and which functions it has called. All under the GIL.
 */
#include "span.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"

#define SPANS_MAX (1u << 20) /* entries; beyond that calls are missed */

struct span {
	uint64_t thread;  /* 0: free */
	const void *what; /* a cell, by its number; a watch; the thread itself */
	uint32_t depth;
	uint64_t start;
	uint64_t lost; /* of a thread: ticks that timing has cost; of a cell: that when it began */
};

static struct {
	struct span *entries;
	size_t mask, used;
	uint32_t epoch;
} spans;

static const char thread_itself;

uint32_t span_epoch(void)
{
	return spans.epoch;
}

void span_reset(void)
{
	free(spans.entries);
	spans.entries = NULL;
	spans.mask = spans.used = 0;
	spans.epoch++;
}

static struct span *slot_for(struct span *entries, size_t mask, uint64_t thread, const void *what)
{
	size_t i = ((thread >> 6) ^ (uint64_t)(uintptr_t)what) * 0x9e3779b97f4a7c15ull >> 32 & mask;

	while (entries[i].thread && (entries[i].thread != thread || entries[i].what != what))
		i = (i + 1) & mask;
	return &entries[i];
}

/* Room for so many more; what is found before does not stay where it is. */
static bool make_room(size_t more)
{
	size_t size = spans.entries ? spans.mask + 1 : 256;
	struct span *entries;

	if (spans.entries && (spans.used + more) * 2 <= size)
		return true;
	while ((spans.used + more) * 2 > size)
		size *= 2;
	entries = size <= SPANS_MAX ? calloc(size, sizeof(*entries)) : NULL;
	if (!entries)
		return false;
	for (size_t i = 0; spans.entries && i <= spans.mask; i++)
		if (spans.entries[i].thread)
			*slot_for(entries, size - 1, spans.entries[i].thread,
				  spans.entries[i].what) = spans.entries[i];
	free(spans.entries);
	spans.entries = entries;
	spans.mask = size - 1;
	return true;
}

/* There must be room. */
static struct span *span_made(uint64_t thread, const void *what)
{
	struct span *s = slot_for(spans.entries, spans.mask, thread, what);

	if (!s->thread) {
		*s = (struct span){ .thread = thread, .what = what };
		spans.used++;
	}
	return s;
}

static const void *cell_key(uint32_t index)
{
	return (const void *)(uintptr_t)(index + 1); /* no address is as low */
}

/* A cell of it that asks for this thread's calls; NULL: not this one. */
static struct sb_page_cell *asks(const struct watch *w, uint32_t i)
{
	struct sb_page_cell *cell = page_cell(&agent.page, w->cells[i].index);

	return cell && page_spans(cell) && hit_passes(&agent.page, cell) ? cell : NULL;
}

static bool miss(const struct watch *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct sb_page_cell *cell = asks(w, i);

		if (cell)
			__atomic_fetch_add(&cell->spans_missed, 1, __ATOMIC_RELAXED);
	}
	return false;
}

/* Whether this thread has called it before; from now on it has. */
static bool called_before(uint64_t thread, const struct watch *w)
{
	struct span *s = span_made(thread, w);

	return s->depth++ > 0;
}

bool span_enter(const struct watch *w, bool known)
{
	uint64_t thread = cpu_thread(), lost;
	bool any = false;

	if (!make_room(w->n + 2) || (known && !called_before(thread, w)))
		return miss(w);
	lost = span_made(thread, &thread_itself)->lost;
	for (uint32_t i = 0; i < w->n; i++) {
		struct span *s;

		if (!asks(w, i))
			continue;
		s = span_made(thread, cell_key(w->cells[i].index));
		any = true;
		if (s->depth++)
			continue;
		s->lost = lost;
		s->start = cpu_ticks();
	}
	return any;
}

static void add(uint32_t index, int64_t ticks)
{
	struct sb_page_cell *cell = page_cell(&agent.page, index);

	if (!cell)
		return;
	__atomic_fetch_add(&cell->span_ticks, ticks > 0 ? (uint64_t)ticks : 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&cell->spans, 1, __ATOMIC_RELAXED);
}

void span_leave(const struct watch *w)
{
	uint64_t now = cpu_ticks(), thread = cpu_thread();
	struct span *self, *s;
	bool any = false;

	if (!spans.entries || !agent.started)
		return;
	self = slot_for(spans.entries, spans.mask, thread, &thread_itself);
	for (uint32_t i = 0; i < w->n; i++) {
		s = slot_for(spans.entries, spans.mask, thread, cell_key(w->cells[i].index));
		if (!s->thread || !s->depth)
			continue;
		any = true;
		if (--s->depth == 0)
			add(w->cells[i].index,
			    (int64_t)(now - s->start - (self->lost - s->lost) - agent.cost_within));
	}
	if (any)
		self->lost += agent.cost_span;
}
