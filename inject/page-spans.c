/* SPDX-License-Identifier: MIT */
/*
 * Reading how long calls took. The target writes it, so every value is taken as it is and only ever
 * added up. Reads go through the file, where a hole stays a hole.
 */
#include <stddef.h>
#include <unistd.h>
#include "page.h"

static unsigned int bucket_of(uint64_t ticks)
{
	unsigned int e, i;

	if (ticks < SB_PAGE_SPAN_STEPS)
		return (unsigned int)ticks;
	e = 63 - (unsigned int)__builtin_clzll(ticks);
	i = (e - 4) * SB_PAGE_SPAN_STEPS + (ticks >> (e - 5) & (SB_PAGE_SPAN_STEPS - 1));
	return i < SB_PAGE_SPAN_BUCKETS ? i : SB_PAGE_SPAN_BUCKETS - 1;
}

static void add_sums(uint64_t *sum, uint64_t *summed, const uint64_t *more, const uint64_t *n)
{
	for (int i = 0; i < SB_PAGE_VALUES; i++) {
		if (sum[i] == UINT64_MAX || more[i] == UINT64_MAX ||
		    __builtin_add_overflow(sum[i], more[i], &sum[i]))
			sum[i] = UINT64_MAX;
		summed[i] += n[i];
	}
}

static void add_times(struct page_spans *spans, const struct sb_page_span *s)
{
	uint64_t least = ~s->inv_least;

	if (s->calls && (!spans->calls || least < spans->least))
		spans->least = least;
	if (s->most > spans->most)
		spans->most = s->most;
	spans->begun += s->begun;
	spans->calls += s->calls;
	spans->ticks += s->ticks;
	spans->own_ticks += s->own_ticks;
	spans->outer_ticks += s->outer_ticks;
	spans->apart += s->apart;
	for (int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++)
		spans->bucket[i] += s->bucket[i];
	add_sums(spans->sum, spans->summed, s->sum, s->summed);
	if (s->last)
		spans->bucket[bucket_of(s->last - 1)]++;
}

static uint32_t block_of(const struct page *page, uint32_t proc, uint32_t target)
{
	const struct sb_page_header *h = &page->lay;
	const struct sb_page_cell *cell = (const void *)((const char *)page->hdr + h->blocks_off +
							 proc * h->block_size +
							 (uint64_t)target * h->cell_size);
	uint32_t block = cell->span_block;

	return block < h->span_blocks ? block : 0;
}

/* A call that gave way is missing in the children of the one in which it was made. */
static bool lost_some(const struct page *page, uint32_t proc)
{
	uint64_t at = page->lay.calls_off + proc * sizeof(struct sb_page_calls) +
		      offsetof(struct sb_page_calls, thread[0].lost);
	uint64_t lost;

	return pread(page->files.counts, &lost, sizeof(lost), (off_t)at) == (ssize_t)sizeof(lost) &&
	       lost;
}

void page_read_spans(const struct page *page, uint32_t proc, uint32_t target,
		     struct page_spans *spans)
{
	const size_t slots = page_slots(page);
	const int fd = page->files.counts;
	uint32_t block = block_of(page, proc, target);
	off_t start = (off_t)(page->lay.spans_off + block * slots * sizeof(struct sb_page_span));

	if (block)
		spans->apart += lost_some(page, proc);
	for (size_t i = 0; i < slots && block; i++) {
		off_t at = start + (off_t)(i * sizeof(struct sb_page_span));
		off_t data = lseek(fd, at, SEEK_DATA);
		struct sb_page_span s;

		if (data < 0)
			return;
		if (data >= at + (off_t)sizeof(s)) {
			i = (size_t)(data - start) / sizeof(s);
			at = start + (off_t)(i * sizeof(s));
		}
		if (i < slots && pread(fd, &s, sizeof(s), at) == (ssize_t)sizeof(s))
			add_times(spans, &s);
	}
}

void page_spans_add(struct page_spans *to, const struct page_spans *from)
{
	if (from->calls && (!to->calls || from->least < to->least))
		to->least = from->least;
	if (from->most > to->most)
		to->most = from->most;
	to->begun += from->begun;
	to->calls += from->calls;
	to->ticks += from->ticks;
	to->own_ticks += from->own_ticks;
	to->outer_ticks += from->outer_ticks;
	to->apart += from->apart;
	add_sums(to->sum, to->summed, from->sum, from->summed);
	for (int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

uint64_t page_span_bucket(unsigned int i)
{
	unsigned int steps = SB_PAGE_SPAN_STEPS;

	if (i < steps)
		return i;
	return (uint64_t)(steps + i % steps) << (i / steps - 1);
}

double page_span_quantile(const struct page_spans *spans, double quantile)
{
	double want, seen = 0, all = 0;

	for (int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++)
		all += (double)spans->bucket[i];
	want = quantile * all;
	for (unsigned int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++) {
		double here = (double)spans->bucket[i], low, value;

		if (here == 0 || seen + here < want) {
			seen += here;
			continue;
		}
		low = (double)page_span_bucket(i);
		value = low + ((double)page_span_bucket(i + 1) - low) * (want - seen) / here;
		if (value > (double)spans->most)
			value = (double)spans->most;
		return value < (double)spans->least ? (double)spans->least : value;
	}
	return 0;
}

bool page_read_function(const struct page *page, uint32_t each, struct sb_page_function *sums)
{
	off_t at = (off_t)(page->lay.functions_off + (each + 1ull) * sizeof(*sums)), data;

	if (!page->lay.functions_off || each + 1ull >= page->lay.each_max)
		return false;
	data = lseek(page->files.counts, at, SEEK_DATA);
	return data >= 0 && data < at + (off_t)sizeof(*sums) &&
	       pread(page->files.counts, sums, sizeof(*sums), at) == (ssize_t)sizeof(*sums) &&
	       sums->calls;
}

void page_function_add(struct sb_page_function *to, const struct sb_page_function *from)
{
	to->calls += from->calls;
	to->ticks += from->ticks;
	to->own_ticks += from->own_ticks;
	to->apart += from->apart;
	if (from->most > to->most)
		to->most = from->most;
	if (from->inv_least > to->inv_least)
		to->inv_least = from->inv_least;
	for (int i = 0; i < SB_PAGE_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

uint64_t page_function_bucket(unsigned int i)
{
	return i < 4 ? i : (4ull + i % 4) << (i / 4 - 1);
}

double page_function_quantile(const struct sb_page_function *sums, double quantile)
{
	double want, seen = 0, all = 0;

	for (int i = 0; i < SB_PAGE_BUCKETS; i++)
		all += (double)sums->bucket[i];
	want = quantile * all;
	for (unsigned int i = 0; i < SB_PAGE_BUCKETS; i++) {
		double here = (double)sums->bucket[i], low, value;

		if (here == 0 || seen + here < want) {
			seen += here;
			continue;
		}
		low = (double)page_function_bucket(i);
		value = low + ((double)page_function_bucket(i + 1) - low) * (want - seen) / here;
		if (value > (double)sums->most)
			value = (double)sums->most;
		return value < (double)~sums->inv_least ? (double)~sums->inv_least : value;
	}
	return 0;
}
