/* SPDX-License-Identifier: MIT */
/* A process leaves the page that it shares: copies the process's part of a page to another one. */
#include <string.h>
#include <unistd.h>
#include "page.h"

static void *at(const struct page *page, uint64_t off)
{
	return (char *)page->hdr + off;
}

/* Copies what is no hole; both files have them at the same place. */
static void copy_part(const struct page *page, const struct page *from, uint64_t start,
		      uint64_t size)
{
	uint64_t end = start + size;
	off_t off = (off_t)start;

	while ((off = lseek(from->files.counts, off, SEEK_DATA)) >= 0 && (uint64_t)off < end) {
		off_t hole = lseek(from->files.counts, off, SEEK_HOLE);

		if (hole < 0)
			break;
		hole = (uint64_t)hole < end ? hole : (off_t)end;
		memcpy(at(page, (uint64_t)off), at(from, (uint64_t)off), (size_t)(hole - off));
		off = hole;
	}
}

static void copy_counts(const struct page *page, const struct page *from, uint32_t proc)
{
	const struct sb_page_header *h = &page->lay;

	copy_part(page, from, h->counters_off + h->blocks_off + proc * h->block_size,
		  h->block_size);
}

/* The cells, which contain the numbers of their blocks, have been copied. */
static void copy_spans(struct page *page, const struct page *from, uint32_t proc)
{
	const struct sb_page_header *h = &page->lay;
	uint64_t size = page_slots(page) * sizeof(struct sb_page_span);

	for (uint32_t t = 0; t < from->targets_used && h->span_blocks; t++) {
		const struct sb_page_cell *cell =
			at(page, h->blocks_off + proc * h->block_size + (uint64_t)t * h->cell_size);
		uint32_t block = cell->span_block;

		if (!block || block >= h->span_blocks)
			continue;
		page->span_used[block] = true;
		copy_part(page, from, h->spans_off + block * size, size);
	}
	if (h->span_blocks)
		copy_part(page, from, h->calls_off + proc * sizeof(struct sb_page_calls),
			  sizeof(struct sb_page_calls));
}

static void copy_cells(const struct page *page, const struct page *from, uint32_t proc)
{
	const struct sb_page_header *h = &page->lay;

	for (uint32_t t = 0; t < from->targets_used; t++) {
		uint64_t off = h->blocks_off + proc * h->block_size + (uint64_t)t * h->cell_size;

		memcpy(at(page, off), at(from, off), sizeof(struct sb_page_cell));
	}
}

/* The cells contain the numbers of their tables. */
static void copy_tables(struct page *page, const struct page *from, uint32_t proc)
{
	for (int i = 1; i < PAGE_TABLE_PAIRS; i++) {
		uint64_t off = page->lay.threads_off + 2ull * i * sizeof(struct sb_page_threads);

		if (!from->tables[i].used || from->tables[i].proc != proc)
			continue;
		page->tables[i] = from->tables[i];
		memcpy(at(page, off), at(from, off), 2 * sizeof(struct sb_page_threads));
	}
}

/*
 * An agent's functions continue to count in the new page's notes; their counts so far stay in the
 * old page.
 */
static void copy_notes(const struct page *page, const struct page *from)
{
	uint64_t used = __atomic_load_n(&page_notice(from)->notes_used, __ATOMIC_ACQUIRE);
	struct page_note note = { 0 };

	used = used < page->lay.notes_size ? used : page->lay.notes_size;
	memcpy(at(page, page->lay.notes_off), at(from, page->lay.notes_off), used);
	page_notice(page)->notes_used = used;
	while (page_next_note(page, &note))
		memset(at(page, page->lay.notes_off + note.at - sizeof(note.hits)), 0,
		       sizeof(note.hits));
	page_note_done(&note);
}

void page_take_over(struct page *page, const struct page *from, uint32_t proc)
{
	page->targets_used = from->targets_used;
	page->record = from->record;
	page->lay.tsc_hz = from->lay.tsc_hz;
	memcpy(page->span_cost, from->span_cost, sizeof(page->span_cost));
	memcpy(page->value_cost, from->value_cost, sizeof(page->value_cost));
	page->proc_used[proc] = true;
	*page->hdr = *from->hdr;
	*page_proc(page, proc) = *page_proc(from, proc);
	*page_ring(page, proc) = *page_ring(from, proc);
	copy_cells(page, from, 0);
	copy_cells(page, from, proc);
	copy_tables(page, from, proc);
	copy_counts(page, from, proc);
	copy_spans(page, from, proc);
	copy_notes(page, from);
}
