/* SPDX-License-Identifier: MIT */
/* quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/live/rhythm.h"
#include "sweep/rng.h"

/*
 * A counter of 5000 items a second, published each 300 ms or at once, and a look at it each `every`
 * ms or up to three times that. The look itself counts as an item.
 */
#define PER_MS	  5.0
#define PERIOD_MS 300
#define LOOKS	  32

static double counter(double ms, int look, bool published)
{
	double at = published ? (double)((int)(ms / PERIOD_MS) * PERIOD_MS) : ms;

	return at * PER_MS + look;
}

static struct source_rhythm seen(struct rng *rng, double every_ms, size_t n, bool published)
{
	double grown[LOOKS], ms = 1e3 * rng_uniform(rng), was = counter(ms, 0, published), now;
	uint64_t at_ns[LOOKS];
	struct looks looks = { grown, at_ns, n };
	struct source_rhythm out = { 0 };

	for (size_t i = 0; i < n; i++) {
		ms += every_ms * (1 + 2 * rng_uniform(rng));
		now = counter(ms, (int)i + 1, published);
		grown[i] = now - was;
		at_ns[i] = (uint64_t)(ms * 1e6);
		was = now;
	}
	rhythm_find(&looks, &out);
	return out;
}

/* How many of 1000 are taken for a counter that is published each 200 to 400 ms. */
static int taken(double every_ms, size_t n, bool published)
{
	struct rng rng;
	int count = 0;

	rng_seed(&rng, 5);
	for (int i = 0; i < 1000; i++) {
		uint64_t period = seen(&rng, every_ms, n, published).period_ns;

		count += published ? period > 200000000 && period < 400000000 : period > 0;
	}
	return count;
}

static void fast_looks_show_the_period(void **state)
{
	(void)state;
	assert_in_range(taken(10, 32, true), 950, 1000);
}

/* A command that takes as long as the period, on a busy machine. */
static void slow_looks_show_the_period(void **state)
{
	(void)state;
	assert_in_range(taken(70, 12, true), 900, 1000);
	assert_in_range(taken(90, 12, true), 800, 1000);
}

static void a_counter_that_is_up_to_date_has_none(void **state)
{
	(void)state;
	assert_int_equal(taken(10, 32, false), 0);
	assert_int_equal(taken(70, 12, false), 0);
	assert_int_equal(taken(90, 5, false), 0);
}

/* A tenth of the largest is no jump: one that stands in between, of a program that was stopped. */
static void one_pause_is_no_period(void **state)
{
	double grown[] = { 500, 510, 3, 505, 480, 530, 498, 507, 515, 490 };
	uint64_t at_ns[10];
	struct looks looks = { grown, at_ns, 10 };
	struct source_rhythm out = { 0 };

	(void)state;
	for (size_t i = 0; i < 10; i++)
		at_ns[i] = 100000000 * (i + 1);
	rhythm_find(&looks, &out);
	assert_int_equal(out.period_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fast_looks_show_the_period),
		cmocka_unit_test(slow_looks_show_the_period),
		cmocka_unit_test(a_counter_that_is_up_to_date_has_none),
		cmocka_unit_test(one_pause_is_no_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
