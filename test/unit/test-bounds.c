/* SPDX-License-Identifier: MIT */
/*
 * The real stub with a page that a process of fewer rights has written to: no value in it leads
 * outside of the page, into a search without an end, or into a delay or a wait that is longer than
 * what private memory allows for.
 */
#include "hooked.h"
#include "inject/clock.h"

enum { MOST_SHIFT = 22 }; /* about a millisecond */

static const uint64_t numbers[] = { 0,		1,	    2,		 127,
				    128,	129,	    4096,	 65535,
				    1u << 20,	0xffffffff, 1ull << 32,	 1ull << 40,
				    1ull << 62, 1ull << 63, ~0ull - 128, ~0ull };

static uint64_t hit(const struct hooked *h)
{
	long (*volatile fn)(long) = (long (*)(long))(uintptr_t)h->text;
	uint64_t start = arch->clock_read();

	assert_int_equal(fn(41), 42);
	return arch->clock_read() - start;
}

/* A machine that does something else meanwhile is not the stub's doing. */
static uint64_t shortest_hit(const struct hooked *h)
{
	uint64_t least = ~0ull;

	for (int i = 0; i < 5; i++) {
		uint64_t took = hit(h);

		least = took < least ? took : least;
	}
	return least;
}

static uint64_t hits(const struct hooked *h)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->hdr->slots + SB_PAGE_SHARED_SLOTS; i++)
		sum += h->counts->slot[i].hits;
	return sum;
}

static void open_hook(struct hooked *h, const struct variant *v)
{
	memset(h, 0, sizeof(*h));
	h->tables = mmap(NULL, SB_PAGE_TABLES * sizeof(*h->tables), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(h->tables != MAP_FAILED);
	make_page(h, v);
	make_hook(h, v);
}

static void close_hook(struct hooked *h)
{
	munmap(h->tables, SB_PAGE_TABLES * sizeof(*h->tables));
	free_hook(h);
}

/* The number of a table counts modulo those that there are. */
static void test_table_numbers(void **state)
{
	struct variant v = { .own = true, .state = SB_STATE_SLOW, .cell_flags = SB_CELL_THREADS };
	struct hooked h;

	(void)state;
	if (!arch->thread_pointer_readable())
		skip();
	open_hook(&h, &v);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		h.cell->threads = numbers[i];
		hit(&h);
	}
	assert_int_equal(hits(&h), 0); /* no thread is in any table */
	close_hook(&h);
}

/* A table without an end: the thread passes where it stands in it, wherever that is. */
static void test_full_table(void **state)
{
	struct variant v = { .own = true, .state = SB_STATE_SLOW, .cell_flags = SB_CELL_THREADS };
	struct sb_page_threads *table;
	struct hooked h;

	(void)state;
	if (!arch->thread_pointer_readable())
		skip();
	open_hook(&h, &v);
	h.cell->threads = SB_PAGE_TABLES - 1;
	table = &h.tables[SB_PAGE_TABLES - 1];
	memset(table, 1, sizeof(*table));
	hit(&h);
	assert_int_equal(hits(&h), 0);
	for (size_t i = 0; i < SB_PAGE_TABLE_SLOTS; i += 1000) {
		uint64_t was = hits(&h);

		table->fsbase[i] = (uint64_t)(uintptr_t)__builtin_thread_pointer();
		hit(&h);
		assert_int_equal(hits(&h), was + 1);
		table->fsbase[i] = 1;
	}
	close_hook(&h);
}

static void check_delays(struct hooked *h, uint64_t most)
{
	const uint64_t none = h->cell->delay_ticks;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		h->cell->delay_ticks = numbers[i];
		assert_true(shortest_hit(h) < 2 * most);
		h->cell->delay_ticks = none;
		h->cell->residual_max = 1ull << 62;
		for (uint32_t s = 0; s < h->hdr->slots + SB_PAGE_SHARED_SLOTS; s++)
			h->counts->slot[s].residual_ticks = (int64_t)numbers[i];
		assert_true(hit(h) < 1000 * most);
		h->cell->pause_above = h->cell->overrun_limit = h->cell->every = numbers[i];
		hit(h);
		h->cell->every = 0;
	}
}

/* By the record, by the stub's own word where the record has none; and no shorter than that. */
static void test_delays(void **state)
{
	const uint64_t most = 1ull << MOST_SHIFT;
	struct hooked h;

	(void)state;
	for (int own = 0; own <= arch->thread_pointer_readable(); own++) {
		for (int record = 0; record < 2; record++) {
			struct variant v = { .own = own,
					     .state = SB_STATE_SLOW,
					     .cell_flags = SB_CELL_DELAY,
					     .most = record ? 0 : most };

			open_hook(&h, &v);
			h.record.most_shift = record ? MOST_SHIFT : 0;
			check_delays(&h, most);
			h.cell->delay_ticks = most - 1000;
			h.cell->residual_max = 0;
			hit(&h);
			assert_true(hit(&h) >= most - 1000);
			close_hook(&h);
		}
	}
}

/* A doorbell that is never answered, by a lease that never ends. */
static void test_doorbell(void **state)
{
	struct variant v = { .doorbell = true, .most = 1ull << MOST_SHIFT };
	struct hooked h;

	(void)state;
	open_hook(&h, &v);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		h.ring->ring = (uint32_t)numbers[i];
		h.proc->done = (uint32_t)numbers[i] - (i % 2 ? 1000 : 0);
		hit(&h);
	}
	assert_true(h.told->doorbells_lost > 0);
	h.hdr->doorbell_spin = 0; /* by the futex, which looks up every tenth of a second */
	hit(&h);
	close_hook(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_numbers),
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_doorbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
