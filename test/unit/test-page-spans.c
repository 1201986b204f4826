/* SPDX-License-Identifier: MIT */
/*
 * Reading how long calls took: the limits of the buckets, quantiles, sums over threads and
 * processes, and a page that contains anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "inject/page.h"

static struct page page;
static struct page_spans spans;

/* As page-abi.h has it, and the stubs and the agent. */
static unsigned int bucket_of(uint64_t v)
{
	unsigned int e, i;

	if (v < 32)
		return (unsigned int)v;
	e = 63 - (unsigned int)__builtin_clzll(v);
	i = (e - 4) * 32 + (v >> (e - 5) & 31);
	return i < SB_PAGE_SPAN_BUCKETS ? i : SB_PAGE_SPAN_BUCKETS - 1;
}

static void test_buckets(void **state)
{
	(void)state;
	assert_int_equal(page_span_bucket(0), 0);
	for (unsigned int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++) {
		uint64_t from = page_span_bucket(i), to = page_span_bucket(i + 1);

		assert_true(to > from);
		assert_int_equal(bucket_of(from), i);
		assert_int_equal(bucket_of(to - 1), i);
		assert_true(to - from <= 1 + from / 32);
	}
	assert_int_equal(bucket_of(UINT64_MAX), SB_PAGE_SPAN_BUCKETS - 1);
	/* the last one begins behind hours at any clock */
	assert_true(page_span_bucket(SB_PAGE_SPAN_BUCKETS) >= 1ull << 40);
}

static int setup(void **state)
{
	(void)state;
	page_layout(&page.lay, &(struct page_want){ .targets = 2, .spans = true, .little = true });
	page.hdr = calloc(1, page.lay.threads_off);
	page.files.counts = memfd_create("test", MFD_CLOEXEC);
	assert_non_null(page.hdr);
	assert_true(page.files.counts >= 0);
	assert_int_equal(ftruncate(page.files.counts, (off_t)page.lay.size), 0);
	memset(&spans, 0, sizeof(spans));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(page.hdr);
	close(page.files.counts);
	return 0;
}

static struct sb_page_cell *cell(uint32_t proc, uint32_t target)
{
	return (void *)((char *)page.hdr + page.lay.blocks_off + proc * page.lay.block_size +
			(uint64_t)target * page.lay.cell_size);
}

static void put(uint32_t block, size_t slot, const struct sb_page_span *s)
{
	uint64_t at = page.lay.spans_off + (block * page_slots(&page) + slot) * sizeof(*s);

	assert_int_equal(pwrite(page.files.counts, s, sizeof(*s), (off_t)at), sizeof(*s));
}

/* A slot with two calls of `ticks`. */
static struct sb_page_span two_calls(uint64_t ticks)
{
	struct sb_page_span s = { .begun = 3,
				  .calls = 2,
				  .ticks = 2 * ticks,
				  .own_ticks = ticks,
				  .outer_ticks = ticks + 1,
				  .inv_least = ~ticks,
				  .most = ticks };

	s.bucket[bucket_of(ticks)] = 2;
	return s;
}

/* Each slot once, wherever it is between holes; and no block but the cell's own. */
static void test_read(void **state)
{
	const size_t slots = page_slots(&page);
	const size_t at[] = { 0, 1, 7, slots - 2, slots - 1 };
	struct sb_page_span s;

	(void)state;
	cell(1, 1)->span_block = 3;
	for (size_t i = 0; i < 5; i++) {
		s = two_calls(100 * (i + 1));
		put(3, at[i], &s);
		s = two_calls(1);
		put(2, at[i], &s);
		put(4, at[i], &s);
	}
	page_read_spans(&page, 1, 1, &spans);
	assert_int_equal(spans.begun, 15);
	assert_int_equal(spans.calls, 10);
	assert_int_equal(spans.ticks, 3000);
	assert_int_equal(spans.own_ticks, 1500);
	assert_int_equal(spans.outer_ticks, 1505);
	assert_int_equal(spans.least, 100);
	assert_int_equal(spans.most, 500);
	assert_int_equal(spans.apart, 0);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(spans.bucket[bucket_of(100 * i)], 2);
	page_read_spans(&page, 1, 0, &spans);
	assert_int_equal(spans.calls, 10);
}

/* A block that the page does not have is none; reading a page of holes allocates nothing. */
static void test_no_block(void **state)
{
	(void)state;
	for (uint32_t block = 0; block < 65536; block += 5) {
		cell(0, 0)->span_block = (uint16_t)block;
		page_read_spans(&page, 0, 0, &spans);
	}
	cell(0, 0)->span_block = UINT16_MAX;
	page_read_spans(&page, 0, 0, &spans);
	assert_int_equal(spans.calls | spans.begun | spans.apart, 0);
	assert_int_equal(lseek(page.files.counts, 0, SEEK_DATA), -1);
}

static void test_any_contents(void **state)
{
	struct sb_page_span s;

	(void)state;
	cell(0, 0)->span_block = 1;
	srandom(7);
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < sizeof(s); i++)
			((uint8_t *)&s)[i] = round % 5 ? (uint8_t)random() : 0xff;
		put(1, (size_t)round % page_slots(&page), &s);
		page_read_spans(&page, 0, 0, &spans);
		page_spans_add(&spans, &spans);
		for (double q = 0; q <= 1; q += 0.125)
			assert_true(page_span_quantile(&spans, q) >= 0);
	}
}

/* A call gave way in this process: the own times are not known, of any target. */
static void test_lost(void **state)
{
	uint64_t one = 1, at = page.lay.calls_off + 2 * sizeof(struct sb_page_calls) +
			       offsetof(struct sb_page_calls, thread[0].lost);
	struct sb_page_span s = two_calls(50);

	(void)state;
	assert_int_equal(pwrite(page.files.counts, &one, 8, (off_t)at), 8);
	for (uint32_t proc = 1; proc <= 2; proc++) {
		cell(proc, 0)->span_block = (uint16_t)proc;
		put(proc, 4, &s);
		page_read_spans(&page, proc, 0, &spans);
		assert_int_equal(spans.apart, proc - 1);
	}
}

static void test_add(void **state)
{
	struct page_spans none = { 0 },
			  a = { .begun = 5, .calls = 4, .ticks = 30, .least = 3, .most = 9 };
	struct page_spans b = { .begun = 2,
				.calls = 1,
				.ticks = 2,
				.own_ticks = 1,
				.apart = 1,
				.least = 2,
				.most = 2 };

	(void)state;
	a.bucket[3] = 4;
	b.bucket[2] = 1;
	page_spans_add(&none, &a);
	assert_memory_equal(&none, &a, sizeof(a));
	page_spans_add(&a, &(struct page_spans){ .begun = 1 });
	assert_int_equal(a.least, 3);
	assert_int_equal(a.begun, 6);
	page_spans_add(&a, &b);
	assert_int_equal(a.begun, 8);
	assert_int_equal(a.calls, 5);
	assert_int_equal(a.ticks, 32);
	assert_int_equal(a.own_ticks, 1);
	assert_int_equal(a.apart, 1);
	assert_int_equal(a.least, 2);
	assert_int_equal(a.most, 9);
	assert_int_equal(a.bucket[2] + a.bucket[3], 5);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Against the values themselves: within a bucket's width. */
static void test_quantiles(void **state)
{
	enum { N = 20000 };
	static uint64_t value[N];

	(void)state;
	assert_true(page_span_quantile(&spans, 0.5) == 0);
	srandom(3);
	for (int i = 0; i < N; i++) {
		value[i] = (uint64_t)random() >> (unsigned int)(random() % 28);
		spans.bucket[bucket_of(value[i])]++;
	}
	qsort(value, N, sizeof(*value), by_size);
	spans.calls = N;
	spans.least = value[0];
	spans.most = value[N - 1];
	for (int i = 1; i < 1000; i++) {
		double q = i / 1000.0, got = page_span_quantile(&spans, q);
		double low = (double)value[(int)(q * N) - 1], high = (double)value[(int)(q * N)];

		assert_true(got >= low * 0.968 - 1 && got <= high * 1.033 + 1);
	}
	assert_true(page_span_quantile(&spans, 0) >= (double)spans.least);
	assert_true(page_span_quantile(&spans, 1) <= (double)spans.most);
}

/* Of one call: it, whatever its bucket's limits. */
static void test_quantile_of_one(void **state)
{
	(void)state;
	for (uint64_t v = 0; v < 1ull << 40; v = v * 2 + 3) {
		struct page_spans one = {
			.begun = 1, .calls = 1, .ticks = v, .least = v, .most = v
		};

		one.bucket[bucket_of(v)] = 1;
		for (double q = 0; q <= 1; q += 0.25)
			assert_true(page_span_quantile(&one, q) == (double)v);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		TEST(test_read),
		TEST(test_no_block),
		TEST(test_any_contents),
		TEST(test_lost),
		TEST(test_add),
		TEST(test_quantiles),
		TEST(test_quantile_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
