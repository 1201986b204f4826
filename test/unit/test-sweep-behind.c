/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
/*
 * What is done ahead of the items and stored hides a delay until the store is empty, however long
 * that takes: the calls fall behind the items meanwhile (behind.h). Calls of a thread that waits
 * for nothing do so, too, and what they delay stays hidden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "sweep-sim.h"
#include "sweep/behind.h"

#define RUNS	60
#define HORIZON 20

struct seen {
	size_t verdict[VERDICT_COUNT], ahead, late, held;
	double kappa; /* of calls: the mean */
};

static struct seen sweeps(const char *what, struct sim_cfg *sim, double kappa)
{
	struct drive_cfg cfg = minute();
	struct seen seen = { 0 };

	cfg.time_ns = HORIZON * 1000000000ull;
	sim->horizon_s = HORIZON;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sweep_result *res = sim_sweep(sim, &cfg, seed);
		const struct sweep_target *t = &res->target[0];

		seen.verdict[t->verdict]++;
		seen.ahead += t->calls.ahead;
		seen.late += t->hold.late;
		seen.kappa += t->calls.kappa.est / RUNS;
		seen.held += t->calls.kappa.lo <= kappa && kappa <= t->calls.kappa.hi;
		sweep_result_free(res);
	}
	printf("# %s: HIDDEN %zu, SLACK %zu, PARTIAL %zu, CRITICAL %zu, INCONCLUSIVE %zu of %d; "
	       "ahead %zu, late %zu; kappa of calls %.2f, held %zu\n",
	       what, seen.verdict[VERDICT_HIDDEN], seen.verdict[VERDICT_SLACK],
	       seen.verdict[VERDICT_PARTIAL], seen.verdict[VERDICT_CRITICAL],
	       seen.verdict[VERDICT_INCONCLUSIVE], RUNS, seen.ahead, seen.late, seen.kappa,
	       seen.held);
	return seen;
}

/* The buffer lasts for longer than the largest delay is held: 8 s and more of a sweep of 20 s. */
static void test_a_buffer_that_outlasts_the_sweep(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct seen seen;

	(void)state;
	sim.step_s = 0.002;
	sim.before_ns = 85e3;
	sim.buffer = 20000;
	seen = sweeps("buffer of 20000 items", &sim, 0);
	assert_int_equal(seen.verdict[VERDICT_HIDDEN], 0);
	assert_int_equal(seen.verdict[VERDICT_PARTIAL], 0);
	assert_int_equal(seen.verdict[VERDICT_SLACK], 0);
	assert_true(seen.ahead * 100 >= RUNS * 95);
}

/* A thread beside the items that waits for nothing: each delay of a call makes its next one later.
 */
static void test_a_thread_that_waits_for_nothing_stays_hidden(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct seen seen;

	(void)state;
	sim.absorb = 1;
	seen = sweeps("waits for nothing", &sim, 1);
	assert_true(seen.verdict[VERDICT_HIDDEN] * 100 >= RUNS * 70);
	assert_int_equal(seen.ahead, 0);
	assert_true(seen.held * 100 >= RUNS * 85);
}

static void test_calls_that_keep_step_are_not_behind(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct seen seen;

	(void)state;
	seen = sweeps("keep step", &sim, 0);
	assert_true(seen.verdict[VERDICT_HIDDEN] * 100 >= RUNS * 70);
	assert_int_equal(seen.ahead, 0);
	assert_true(seen.held * 100 >= RUNS * 85);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_buffer_that_outlasts_the_sweep),
		cmocka_unit_test(test_a_thread_that_waits_for_nothing_stays_hidden),
		cmocka_unit_test(test_calls_that_keep_step_are_not_behind),
	};

	cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
