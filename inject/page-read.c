/* SPDX-License-Identifier: MIT */
/*
 * Reading counters. The page is written by the target, so every value is taken as it is and
 * only ever added up; reads go through the file, where a hole stays a hole.
 */
#include <string.h>
#include <unistd.h>
#include "page.h"

static void add_slot(struct page_sums *sums, const struct sb_page_slot *slot)
{
	uint64_t spent = slot->injected_ticks + slot->overrun_ticks;

	sums->hits += slot->hits;
	sums->injected_ticks += slot->injected_ticks;
	sums->overrun_ticks += slot->overrun_ticks;
	sums->lapsed += slot->lapsed;
	if (slot->max_ticks > sums->max_ticks)
		sums->max_ticks = slot->max_ticks;
	if (slot->hits > sums->busiest_hits)
		sums->busiest_hits = slot->hits;
	if (spent > sums->busiest_ticks)
		sums->busiest_ticks = spent;
	for (int i = 0; i < SB_PAGE_BUCKETS; i++) {
		sums->bucket[i] += slot->bucket[i];
		sums->delayed += slot->bucket[i];
	}
}

static void add_cell(struct page_sums *sums, const struct sb_page_cell *cell)
{
	sums->cuts += cell->cuts;
	sums->cut_ticks += cell->cut_ticks;
}

/* One page of the file holds four of a cell's 1 KiB records; the first is the settings. */
static void add_chunk(struct page_sums *sums, const uint8_t *buf, size_t len, uint64_t off_in_cell,
		      uint32_t slots)
{
	for (size_t at = 0; at + SB_PAGE_SLOT_SIZE <= len; at += SB_PAGE_SLOT_SIZE) {
		uint64_t index = (off_in_cell + at) / SB_PAGE_SLOT_SIZE;

		if (index == 0)
			add_cell(sums, (const void *)(buf + at));
		else if (index <= slots + SB_PAGE_SHARED_SLOTS)
			add_slot(sums, (const void *)(buf + at));
	}
}

void page_read(const struct page *page, uint32_t proc, uint32_t target, struct page_sums *sums)
{
	_Alignas(8) uint8_t buf[4096];
	const struct sb_page_header *h = &page->lay;
	uint64_t start = h->blocks_off + proc * h->block_size + (uint64_t)target * h->cell_size;
	uint64_t end = start + h->cell_size;
	off_t at = (off_t)start;

	while ((at = lseek(page->fd, at, SEEK_DATA)) >= 0 && (uint64_t)at < end) {
		ssize_t n = pread(page->fd, buf, sizeof(buf), at);

		if (n <= 0)
			break;
		add_chunk(sums, buf, (size_t)n, (uint64_t)at - start, h->slots);
		at += n;
	}
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
	if (from->busiest_ticks > to->busiest_ticks)
		to->busiest_ticks = from->busiest_ticks;
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
		if (i == 0) /* mostly hits that were given a little less than asked */
			return 0;
		return bucket_start(i) +
		       (bucket_start(i + 1) - bucket_start(i)) * (want - seen) / here;
	}
	return 0;
}
