/* SPDX-License-Identifier: MIT */
/* The cost of a hook, measured at the start and again while a session runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "inject/clock.h"

enum { BATCH_STEPS = 20, MOST_STEPS = 40 * BATCH_STEPS };

#define NEAR_NS 5.0

static struct clock clk;

/* Until it says that it has changed; false: it never did. */
static bool step_until_changed(struct hook_bench *bench, struct hook_cost *cost, int most)
{
	for (int i = 0; i < most; i++)
		if (hook_bench_step(bench, cost))
			return true;
	return false;
}

/* A session that started on a slow core took too much off each delay, for as long as it ran. */
static void test_a_cost_measured_wrong_is_mended(void **state)
{
	static const double wrong_ns[] = { 60, -12 };
	struct hook_bench *bench = NULL;
	struct hook_cost cost;
	double right;

	(void)state;
	assert_int_equal(clock_hook_cost(&clk, false, &cost, &bench), 0);
	assert_non_null(bench);
	right = cost.delay_ticks;
	for (size_t i = 0; i < sizeof(wrong_ns) / sizeof(*wrong_ns); i++) {
		cost.delay_ticks = right + wrong_ns[i] * clk.ticks_per_ns;
		cost.spread_ticks = 0;
		assert_true(step_until_changed(bench, &cost, MOST_STEPS));
		assert_true(fabs(cost.delay_ticks - right) < NEAR_NS * clk.ticks_per_ns);
		/* What was given meanwhile is uncertain by as much. */
		assert_true(cost.spread_ticks > (fabs(wrong_ns[i]) - NEAR_NS) * clk.ticks_per_ns);
	}
	hook_bench_close(bench);
}

static void test_a_right_cost_stays_near(void **state)
{
	struct hook_bench *bench = NULL;
	struct hook_cost cost;
	double right;

	(void)state;
	assert_int_equal(clock_hook_cost(&clk, true, &cost, &bench), 0);
	right = cost.delay_ticks;
	step_until_changed(bench, &cost, 4 * BATCH_STEPS);
	assert_true(fabs(cost.delay_ticks - right) < NEAR_NS * clk.ticks_per_ns);
	hook_bench_close(bench);
}

/* A hit that is not delayed once read the clock, and waited for all work before it, as one that is.
 */
static void test_a_hit_that_is_not_the_nth_is_cheap(void **state)
{
	struct hook_cost cost;

	(void)state;
	assert_int_equal(clock_hook_cost(&clk, false, &cost, NULL), 0);
	print_message("# counted %.1f ns, not the Nth %.1f ns, smallest delay %.1f ns\n",
		      cost.count_ns, cost.nth_ns, cost.floor_ns);
	assert_true(cost.nth_ns < cost.floor_ns / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cost_measured_wrong_is_mended),
		cmocka_unit_test(test_a_right_cost_stays_near),
		cmocka_unit_test(test_a_hit_that_is_not_the_nth_is_cheap),
	};

	clock_open(&clk);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
