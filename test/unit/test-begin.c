/* SPDX-License-Identifier: MIT */
/*
 * When a delay begins: once the instructions before the call have completed. A processor executes
 * hundreds of instructions ahead; a delay that began with the first of them would pass while the
 * program's own chain of multiplications or cache misses is still under way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "hooked.h"
#include "inject/clock.h"

enum { ROUNDS = 200, LOW = ROUNDS / 10, CALLS = 100, CHAIN = 100, DELAY_NS = 500 };

/* The work of the stub itself, about 10 ns, may run beside the chain. */
#define MOST_HIDDEN_NS 22.0

static struct clock clk;
static struct hooked hooked;
static volatile uint64_t sink;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Ticks for a call behind a chain of that length, each link of which needs the one before. */
static double time_calls(int chain)
{
	long (*volatile fn)(long) = (long (*)(long))(uintptr_t)hooked.text;
	uint64_t x = sink, start = arch->clock_read();

	for (int i = 0; i < CALLS; i++) {
		for (int k = 0; k < chain; k++)
			x = x * 2862933555777941757u + 3037000493u;
		x += (uint64_t)fn((long)x);
	}
	sink = x;
	return (double)(arch->clock_read() - start) / CALLS;
}

/* What the delay adds to a call, in ns: low readings of calls with and without it, in turns. */
static double added_ns(int chain)
{
	double with[ROUNDS], without[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		hooked.cell->state = SB_STATE_OFF;
		without[i] = time_calls(chain);
		hooked.cell->state = SB_STATE_SLOW;
		with[i] = time_calls(chain);
	}
	qsort(with, ROUNDS, sizeof(*with), by_value);
	qsort(without, ROUNDS, sizeof(*without), by_value);
	return clock_to_ns(&clk, with[LOW] - without[LOW]);
}

static void test_a_delay_is_not_hidden_behind_earlier_work(void **state)
{
	static const struct variant how = { .own = true,
					    .state = SB_STATE_SLOW,
					    .cell_flags = SB_CELL_DELAY };
	double alone, behind;

	(void)state;
	make_page(&hooked, &how);
	hooked.cell->delay_ticks = clock_ticks(&clk, DELAY_NS);
	make_hook(&hooked, &how);
	alone = added_ns(0);
	behind = added_ns(CHAIN);
	free_hook(&hooked);
	print_message("%d ns: %.1f ns alone, %.1f ns behind a chain\n", DELAY_NS, alone, behind);
	assert_true(behind > alone - MOST_HIDDEN_NS);
}

static int setup(void **state)
{
	(void)state;
	clock_open(&clk);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_delay_is_not_hidden_behind_earlier_work),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
