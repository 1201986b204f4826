/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_PAGE_H
#define SB_AGENT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/page-abi.h"

/*
 * The agent's side of the control page. Sizes and offsets come from the mailbox, which is this
 * process's own memory, and are checked once, in page_open(): no value in the page, which a fork
 * with fewer rights can also write, leads beyond it.
 */
struct page {
	char *base;
	uint64_t size, blocks_off, block_size, last_block, cell_size, threads_off, counters_off;
	uint64_t notes_off, notes_size, procs_off, last_proc;
	uint64_t spans_off, span_size;
	uint32_t span_blocks; /* 0: none */
	uint64_t calls_off, last_calls, trace_off, chunks_off;
	uint32_t chunks; /* a power of two; 0: calls are not recorded */
	uint32_t stacks; /* the same; 0: without their stacks */
	uint64_t stack_size, stack_list_off, stacks_off;
	uint32_t targets_max, slots, slot_mask;
	const struct sb_page_record *record;
	uint64_t session, tsc_hz;
};

/* 0, or SB_AGENT_DAMAGED; changes *page only on success. */
int page_open(struct page *page, const struct sb_mailbox *mailbox);

static inline const struct sb_page_header *page_header(const struct page *page)
{
	return (const struct sb_page_header *)page->base;
}

static inline struct sb_page_notice *page_notice(const struct page *page)
{
	return (struct sb_page_notice *)(page->base + page->counters_off);
}

/*
 * A cell of the current process: a fork has another one, or that of unregistered processes. NULL:
 * none.
 */
static inline const struct sb_page_cell *page_cell(const struct page *page, uint32_t index)
{
	uint64_t block = __atomic_load_n(&page->record->block_off, __ATOMIC_RELAXED);

	if (__builtin_expect(block > page->last_block || block & 1023, 0))
		return NULL;
	return (const struct sb_page_cell *)(page->base + page->blocks_off + block +
					     index * page->cell_size);
}

/* The counts of a cell. */
static inline struct sb_page_counts *page_counts(const struct page *page,
						 const struct sb_page_cell *cell)
{
	return (struct sb_page_counts *)((uintptr_t)cell + page->counters_off);
}

/* The times of a cell's calls: those of all threads that count in this shared slot; NULL: none. */
static inline struct sb_page_span *page_span(const struct page *page,
					     const struct sb_page_cell *cell, uint32_t slot)
{
	uint32_t block = __atomic_load_n(&cell->span_block, __ATOMIC_RELAXED);

	block = page->span_blocks ? block & (page->span_blocks - 1) : 0;
	if (!block)
		return NULL;
	return (struct sb_page_span *)(page->base + page->spans_off + block * page->span_size) +
	       page->slots + slot % SB_PAGE_SHARED_SLOTS;
}

/* Where the current process reports to sbinject; NULL: nowhere. */
static inline struct sb_page_ring *page_ring(const struct page *page)
{
	uint64_t off = __atomic_load_n(&page->record->proc_off, __ATOMIC_RELAXED);

	if (!off || off > page->last_proc || off % sizeof(struct sb_page_proc))
		return NULL;
	return (struct sb_page_ring *)(page->base + page->counters_off + page->procs_off + off);
}

/* No delay takes longer, whatever its cell contains. */
static inline uint64_t page_most(const struct page *page)
{
	uint32_t shift = __atomic_load_n(&page->record->most_shift, __ATOMIC_RELAXED);

	if (shift)
		return 1ull << (shift & 63);
	return page->tsc_hz ? 10 * page->tsc_hz : 1ull << 35;
}

static inline uint32_t page_state(const struct sb_page_cell *cell)
{
	return __atomic_load_n(&cell->state, __ATOMIC_RELAXED);
}

static inline bool page_spans(const struct sb_page_cell *cell)
{
	return __atomic_load_n(&cell->flags, __ATOMIC_RELAXED) & SB_CELL_SPANS &&
	       page_state(cell) != SB_STATE_OFF;
}

/*
 * Records a call of a Python function by this thread (page-record.c): place is that of the counter
 * in its note, page_place(); own: its code, if its frame is still there (pyframes_copy()). No lock,
 * and safe in a signal handler.
 */
void page_record(const struct page *page, uint64_t thread, uint32_t place, uint64_t own,
		 uint64_t start, uint64_t ticks);

/*
 * Copies the frames of its callers, and writes where they are into the last place of its event
 * (page-stack.c). owner: ~FS base.
 */
void page_stack(const struct page *page, uint64_t owner, uint64_t calls_off, uint64_t own,
		uint64_t start, struct sb_page_more *to);

/* The place of a note's counter: its offset from the notes, in 8 bytes. */
static inline uint32_t page_place(const struct page *page, const uint64_t *each)
{
	return (uint32_t)(((const char *)each - page->base - page->notes_off) / 8);
}

/* Appends a note and returns the address of its function's counter; NULL if the area is full. */
uint64_t *page_note(const struct page *page, uint32_t cell, uint32_t line, const char *module,
		    const char *qualname, const char *file);

#endif
