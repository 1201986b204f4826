/* SPDX-License-Identifier: MIT */
/*
 * Reading counters. The target writes them, so every value is taken as it is and only ever added
 * up. Reads go through the file, where a hole stays a hole.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "page.h"

static void add_slot(struct page_sums *sums, const struct sb_page_slot *slot)
{
	sums->hits += slot->hits;
	sums->injected_ticks += slot->injected_ticks;
	sums->overrun_ticks += slot->overrun_ticks;
	sums->lapsed += slot->lapsed;
	if (slot->max_ticks > sums->max_ticks)
		sums->max_ticks = slot->max_ticks;
	if (slot->hits > sums->busiest_hits)
		sums->busiest_hits = slot->hits;
	for (int i = 0; i < SB_PAGE_BUCKETS; i++) {
		sums->bucket[i] += slot->bucket[i];
		sums->delayed += slot->bucket[i];
	}
}

static void add_cell(struct page_sums *sums, const struct sb_page_counts *cell)
{
	sums->cuts += cell->cuts;
	sums->cut_ticks += cell->cut_ticks;
}

/* The action for each 1 KiB record of a cell; the first is its sums, then come the slots. */
struct reading {
	struct page_sums *sums;
	struct page_spent *spent;
	page_slot_fn *each;
	void *ctx;
	size_t slots;
};

static void add_chunk(const struct reading *r, const uint8_t *buf, size_t len, uint64_t off_in_cell)
{
	for (size_t at = 0; at + SB_PAGE_SLOT_SIZE <= len; at += SB_PAGE_SLOT_SIZE) {
		uint64_t index = (off_in_cell + at) / SB_PAGE_SLOT_SIZE;
		const struct sb_page_slot *slot = (const void *)(buf + at);

		if (index > r->slots)
			return;
		if (index == 0 && r->sums)
			add_cell(r->sums, (const void *)(buf + at));
		else if (index && r->sums)
			add_slot(r->sums, slot);
		else if (index && r->each && slot->hits)
			r->each(r->ctx, index - 1, slot);
		else if (index && r->spent)
			r->spent[index - 1] = (struct page_spent){ slot->injected_ticks,
								   slot->overrun_ticks };
	}
}

static void read_cell(const struct page *page, uint32_t proc, uint32_t target,
		      const struct reading *r)
{
	_Alignas(8) uint8_t buf[4096];
	const struct sb_page_header *h = &page->lay;
	uint64_t start = h->counters_off + h->blocks_off + proc * h->block_size +
			 (uint64_t)target * h->cell_size;
	uint64_t end = start + h->cell_size;
	off_t at = (off_t)start;

	while ((at = lseek(page->files.counts, at, SEEK_DATA)) >= 0 && (uint64_t)at < end) {
		ssize_t n = pread(page->files.counts, buf, sizeof(buf), at);

		if (n <= 0)
			break;
		add_chunk(r, buf, (size_t)n, (uint64_t)at - start);
		at += n;
	}
}

size_t page_slots(const struct page *page)
{
	return page->lay.slots + SB_PAGE_SHARED_SLOTS;
}

void page_read(const struct page *page, uint32_t proc, uint32_t target, struct page_sums *sums)
{
	struct reading r = { .sums = sums, .slots = page_slots(page) };

	read_cell(page, proc, target, &r);
}

void page_read_spent(const struct page *page, uint32_t proc, uint32_t target,
		     struct page_spent *spent)
{
	struct reading r = { .spent = spent, .slots = page_slots(page) };

	read_cell(page, proc, target, &r);
}

void page_each_slot(const struct page *page, uint32_t proc, uint32_t target, page_slot_fn *each,
		    void *ctx)
{
	struct reading r = { .each = each, .ctx = ctx, .slots = page_slots(page) };

	read_cell(page, proc, target, &r);
}

void page_each_add(const struct page *page, uint64_t *sums, size_t n)
{
	uint64_t buf[512], at = page->lay.each_off;

	n = n < page->lay.each_max ? n : page->lay.each_max;
	for (size_t i = 0; i < n; i += 512) {
		size_t some = n - i < 512 ? n - i : 512, len = some * sizeof(*buf);

		if (pread(page->files.counts, buf, len, (off_t)(at + i * sizeof(*buf))) !=
		    (ssize_t)len)
			return;
		for (size_t k = 0; k < some; k++)
			sums[i + k] += buf[k];
	}
}

/* The next string of a note, up to its NUL; NULL where the note is inconsistent. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *nul = text ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	*at = nul ? nul + 1 : NULL;
	return nul ? text : NULL;
}

/* copy: `size` bytes. */
static bool read_note(struct page_note *note, const struct sb_page_note *copy, size_t size)
{
	const char *end = (const char *)copy + size - sizeof(note->hits), *at = copy->text;

	note->cell = copy->cell;
	note->pid = copy->pid;
	note->line = copy->line;
	note->module = next_text(&at, end);
	note->symbol = next_text(&at, end);
	note->file = next_text(&at, end);
	memcpy(&note->hits, end, sizeof(note->hits));
	return note->file;
}

/* The target can write the area at any time. */
bool page_next_note(const struct page *page, struct page_note *note)
{
	const char *area = (const char *)page->hdr + page->lay.notes_off;
	uint64_t used = __atomic_load_n(&page_notice(page)->notes_used, __ATOMIC_ACQUIRE);

	used = used < page->lay.notes_size ? used : page->lay.notes_size;
	while (note->at + sizeof(struct sb_page_note) <= used) {
		const struct sb_page_note *shared = (const void *)(area + note->at);
		uint32_t size = __atomic_load_n(&shared->size, __ATOMIC_ACQUIRE);

		if (size < sizeof(*shared) + sizeof(note->hits) || size % 8 ||
		    size > used - note->at)
			return false;
		free(note->copy);
		note->copy = malloc(size);
		if (!note->copy)
			abort();
		memcpy(note->copy, shared, size);
		note->at += size;
		if (read_note(note, note->copy, size))
			return true;
	}
	return false;
}

void page_note_done(struct page_note *note)
{
	free(note->copy);
	note->copy = NULL;
}

void page_sums_add(struct page_sums *to, const struct page_sums *from)
{
	to->hits += from->hits;
	to->delayed += from->delayed;
	to->cuts += from->cuts;
	to->injected_ticks += from->injected_ticks;
	to->cut_ticks += from->cut_ticks;
	to->overrun_ticks += from->overrun_ticks;
	to->lapsed += from->lapsed;
	if (from->max_ticks > to->max_ticks)
		to->max_ticks = from->max_ticks;
	if (from->busiest_hits > to->busiest_hits)
		to->busiest_hits = from->busiest_hits;
	for (int i = 0; i < SB_PAGE_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

/* Where a bucket starts, ticks of excess; see page-abi.h. */
static double bucket_start(int i)
{
	double scale = 1 << SB_PAGE_BUCKET_SHIFT;

	if (i < 4)
		return i * scale;
	return (double)((4ull + (unsigned int)i % 4) << (i / 4 - 1)) * scale;
}

double page_excess_quantile(const struct page_sums *sums, double quantile)
{
	double want = quantile * (double)sums->delayed, seen = 0;

	for (int i = 0; i < SB_PAGE_BUCKETS; i++) {
		double here = (double)sums->bucket[i];

		if (here == 0 || seen + here < want) {
			seen += here;
			continue;
		}
		if (i == 0) /* mostly hits that were given a little less than set */
			return 0;
		return bucket_start(i) +
		       (bucket_start(i + 1) - bucket_start(i)) * (want - seen) / here;
	}
	return 0;
}
