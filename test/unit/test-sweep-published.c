/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "sweep-sim.h"
#include "sweep/stat.h"

/*
 * A source that is published at intervals, and read at its changes: whole sweeps of simulated
 * programs. Each has an interval, even where few periods fit; intervals hold the truth; and they
 * are narrow, since a window of one period is a window.
 */
#define RUNS 100

static const struct source {
	double period_s, seconds, kappa;
	double half;   /* the median half-width, at most */
	size_t proven; /* of 100 with the right verdict, at least */
} sources[] = {
	{ 0.1, 6, 1, 0.25, 0 },	  { 0.1, 10, 1, 0.12, 80 }, { 0.1, 20, 1, 0.08, 90 },
	{ 0.1, 60, 1, 0.06, 90 }, { 0.1, 20, 0, 0.08, 80 }, { 0.1, 60, 0.4, 0.06, 90 },
	{ 1, 60, 1, 0.1, 0 },	  { 1, 60, 0, 0.1, 50 },    { 1, 120, 1, 0.06, 90 },
	{ 1, 120, 0.4, 0.06, 0 }, { 0.5, 60, 1, 0.08, 90 },
};

static enum sweep_verdict right(double kappa)
{
	return kappa > 0.9 ? VERDICT_CRITICAL : kappa > 0 ? VERDICT_PARTIAL : VERDICT_HIDDEN;
}

static void sweeps(const struct source *s)
{
	double half[RUNS];
	size_t held = 0, proven = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sim_cfg sim = drifting(s->kappa);
		struct drive_cfg cfg = drive_defaults();
		struct sweep_result *res;
		const struct sweep_target *t;

		sim.horizon_s = s->seconds;
		sim.period_s = s->period_s;
		sim.at_changes = true;
		cfg.time_ns = (uint64_t)(s->seconds * 1e9);
		res = sim_sweep(&sim, &cfg, seed);
		t = &res->target[0];
		assert_false(isnan(t->kappa.lo) || isnan(t->kappa.hi));
		assert_true(t->verdict == right(s->kappa) || t->verdict == VERDICT_INCONCLUSIVE);
		assert_true(res->time_s <= s->seconds);
		half[seed - 1] = (t->kappa.hi - t->kappa.lo) / 2;
		held += t->kappa.lo <= s->kappa && s->kappa <= t->kappa.hi;
		proven += t->verdict == right(s->kappa);
		sweep_result_free(res);
	}
	printf("# each %.1f s, sweep of %.0f s, kappa %.1f: held %zu of %d, half-width %.3f, %zu "
	       "verdicts\n",
	       s->period_s, s->seconds, s->kappa, held, RUNS, stat_median(half, RUNS), proven);
	assert_true(held >= RUNS * 88 / 100);
	assert_true(stat_median(half, RUNS) <= s->half);
	assert_true(proven >= s->proven);
}

static void test_sources_that_are_published_at_intervals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		sweeps(&sources[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources_that_are_published_at_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
