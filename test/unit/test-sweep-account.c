/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sweep-sim.h"
#include "src/base/must.h"

/*
 * The evidence of simulated sweeps (sweep-sim.h): counters that a delay changes by a known amount,
 * and counters that it does not change at all.
 */
enum { ON_CPU, FUTEX, SLEEP, SWITCHES, RARE, BURSTS, NEVER, COUNTERS };

struct world {
	double cpu, futex; /* ns a ns injected, of the delayed side */
	bool unread;	   /* each seventh window is not read */
	int side_lanes;	   /* the delayed side is the sum of so many lanes */
};

struct meter {
	struct rng rng;
	double level; /* of what drifts on both sides */
	size_t windows;
	double counter[SIDE_COUNT * COUNTERS];
};

/* As an AR(1): windows near each other are alike. */
static double drifting_level(struct meter *m)
{
	m->level = 0.8 * m->level + 0.02 * rng_normal(&m->rng);
	return 1 + m->level;
}

static double bursts(struct meter *m)
{
	return rng_uniform(&m->rng) < 0.1 ? 5 / rng_uniform(&m->rng) : 0;
}

/* Of the time of the side some is on a processor, some in futex, and the rest is asleep. */
static void fill_side(struct meter *m, double time, double x, const struct world *w, double *c)
{
	double cpu = 0.3 * time * drifting_level(m) * (1 + 0.01 * rng_normal(&m->rng)) + w->cpu * x;

	c[ON_CPU] = fmax(0, cpu);
	c[FUTEX] = fmax(0, 0.5 * time * (1 + 0.03 * rng_normal(&m->rng)) + w->futex * x);
	c[SLEEP] = fmax(0, time - c[ON_CPU] - c[FUTEX]);
	c[SWITCHES] = sim_poisson(&m->rng, time / 200e3);
	c[RARE] = sim_poisson(&m->rng, 0.05);
	c[BURSTS] = bursts(m);
	c[NEVER] = 0;
}

static void read_counters(struct meter *m, const struct world *w, struct drive_window *window)
{
	const struct world no_effect = { 0 };
	double x = 0, n = w->side_lanes ? w->side_lanes : 1;

	window->counter = NULL;
	if (w->unread && m->windows++ % 7 == 0)
		return;
	for (size_t i = 0; i < window->n_lanes; i++)
		x += (double)window->lane[i].injected_ns;
	fill_side(m, n * (double)window->time_ns, x, w, m->counter);
	fill_side(m, 3 * (double)window->time_ns, x, &no_effect, m->counter + COUNTERS);
	window->counter = m->counter;
}

/* NULL as the world: without counters. */
static struct sweep_result *account(const struct sim_cfg *sim_cfg, const struct world *world,
				    uint64_t seed)
{
	static const char *const name[] = { "a", "b" };
	struct meter meter = { 0 };
	struct drive_cfg cfg = minute();
	struct sweep_result *res;
	struct sim_lanes lanes;
	struct drive_step step;
	struct drive_window window;
	struct drive *drive;
	struct sim sim;

	cfg.time_ns = 20000000000u;
	cfg.seed = seed;
	cfg.n_targets = sim_cfg->n_targets;
	cfg.spec = name;
	cfg.n_counters = world ? COUNTERS : 0;
	rng_seed(&meter.rng, seed * 77 + 5);
	sim_open(&sim, sim_cfg, seed);
	assert_int_equal(drive_open(&cfg, &drive, NULL), 0);
	for (int i = 0; i < sim_cfg->lanes; i++)
		drive_lane(drive, "server", 100 + i, 100 + i);
	for (drive_next(drive, &step); step.what != DRIVE_DONE; drive_next(drive, &step)) {
		sim_window(&sim, &step, drive_treated(drive), &window, &lanes);
		if (world)
			read_counters(&meter, world, &window);
		assert_int_equal(drive_take(drive, &window, NULL), 0);
	}
	res = drive_end(drive);
	drive_close(drive);
	return res;
}

static const struct sweep_change *change(const struct sweep_result *res, enum sweep_side side,
					 size_t i)
{
	assert_non_null(res->target[0].change);
	return &res->target[0].change[(size_t)side * COUNTERS + i];
}

static size_t shown(const struct sweep_result *res)
{
	size_t n = 0;

	for (size_t i = 0; res->target[0].change && i < (size_t)SIDE_COUNT * COUNTERS; i++)
		n += res->target[0].change[i].significant;
	return n;
}

/* The delay changes nothing: at most 5 % of the sweeps show anything. */
static void test_no_effect_is_shown_in_one_family_of_twenty(void **state)
{
	const struct world nothing = { 0 };
	struct sim_cfg sim = drifting(0);
	size_t runs = 400, families = 0, tests = 0, naive = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= runs; seed++) {
		struct sweep_result *res = account(&sim, &nothing, seed);

		families += shown(res) > 0;
		tests += res->n_tests;
		for (size_t i = 0; i < (size_t)SIDE_COUNT * COUNTERS; i++)
			naive += res->target[0].change[i].p_none < 0.05;
		sweep_result_free(res);
	}
	printf("# no effect: %zu of %zu families show something; %zu of %zu tests below 5 %%\n",
	       families, runs, naive, tests);
	assert_true(families * 20 <= runs);
	/* The tests can fail: without the correction there is something to see. */
	assert_true(tests >= runs * (size_t)(SIDE_COUNT * (COUNTERS - 2)));
	assert_true(naive * 100 >= tests);
}

/* Hidden in a wait: the processor grows by what is injected, the wait shrinks by it. */
static void test_a_hidden_delay_is_found_in_the_wait(void **state)
{
	const struct world hides = { .cpu = 1, .futex = -0.9 };
	struct sim_cfg sim = drifting(0);
	size_t runs = 60, found = 0, held = 0, other = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= runs; seed++) {
		struct sweep_result *res = account(&sim, &hides, seed);
		const struct sweep_target *t = &res->target[0];
		const struct sweep_change *cpu = change(res, SIDE_DELAYED, ON_CPU);
		const struct sweep_change *futex = change(res, SIDE_DELAYED, FUTEX);
		const struct sweep_change *sleep = change(res, SIDE_DELAYED, SLEEP);
		double x = t->dose[t->n_doses - 1].x_ns;

		found += cpu->significant && futex->significant;
		held += futex->slope.lo <= -0.9 && -0.9 <= futex->slope.hi &&
			futex->delta.lo <= -0.9 * x && -0.9 * x <= futex->delta.hi;
		other += shown(res) > 2u + sleep->significant;
		assert_true(fabs(cpu->delta.est - x) < 0.2 * x);
		assert_true(fabs(cpu->dose - cpu->sham - cpu->delta.est) < 1e-6 * cpu->dose);
		assert_true(cpu->p_adjusted >= cpu->p_none);
		sweep_result_free(res);
	}
	printf("# hidden: found in %zu of %zu, held %zu, something else in %zu\n", found, runs,
	       held, other);
	assert_true(found >= runs * 95 / 100);
	assert_true(held >= runs * 85 / 100);
	assert_true(other * 20 <= runs);
}

/* Four replicas side by side: their sum is divided by four, as x is; others are not. */
static void test_lanes_are_averaged_as_the_injected_time(void **state)
{
	const struct world hides = { .cpu = 1, .futex = -1, .side_lanes = 4 };
	struct sim_cfg sim = drifting(0);
	struct sweep_result *res;
	double x;

	(void)state;
	sim.lanes = 4;
	res = account(&sim, &hides, 3);
	x = res->target[0].dose[res->target[0].n_doses - 1].x_ns;
	assert_true(res->target[0].lanes == 4);
	assert_true(fabs(change(res, SIDE_DELAYED, ON_CPU)->delta.est - x) < 0.1 * x);
	assert_true(fabs(change(res, SIDE_DELAYED, ON_CPU)->slope.est - 1) < 0.1);
	assert_true(fabs(change(res, SIDE_DELAYED, ON_CPU)->sham / res->target[0].t0_ns - 0.3) <
		    0.1);
	assert_true(fabs(change(res, SIDE_OTHERS, ON_CPU)->sham / res->target[0].t0_ns - 0.9) <
		    0.3);
	sweep_result_free(res);
}

static void same(double a, double b)
{
	assert_true(a == b || (isnan(a) && isnan(b)));
}

/* Kappa, its interval and its p are the same with and without counters. */
static void test_evidence_leaves_kappa_alone(void **state)
{
	const struct world hides = { .cpu = 1, .futex = -0.5 };
	struct sim_cfg sim = drifting(0); /* p is not at its least */

	(void)state;
	sim.n_targets = 2;
	sim.target[1] = sim.target[0];
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sweep_result *with = account(&sim, &hides, seed);
		struct sweep_result *without = account(&sim, NULL, seed);

		assert_null(without->target[0].change);
		assert_int_equal(without->n_tests, 0);
		for (size_t i = 0; i < 2; i++) {
			const struct sweep_target *a = &with->target[i], *b = &without->target[i];

			same(a->kappa.est, b->kappa.est);
			same(a->kappa.lo, b->kappa.lo);
			same(a->p_random, b->p_random);
			assert_int_equal(a->verdict, b->verdict);
		}
		sweep_result_free(with);
		sweep_result_free(without);
	}
}

/* A block with a window that was not read is no block of the evidence; kappa keeps it. Each seventh
 * as 0 would make 0.26 of 0.3. */
static void test_a_window_that_was_not_read_is_no_zero(void **state)
{
	const struct world hides = { .cpu = 1, .futex = -0.9, .unread = true };
	struct sim_cfg sim = drifting(0);
	size_t known = 0, unread = 0, windows = 0;
	double sum = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sweep_result *res = account(&sim, &hides, seed);
		const struct sweep_change *cpu = change(res, SIDE_DELAYED, ON_CPU);

		for (size_t i = 0; i < res->n_windows; i++)
			unread += !res->window[i].counter;
		windows += res->n_windows;
		assert_true(res->target[0].blocks > 2);
		known += isfinite(cpu->sham);
		sum += isfinite(cpu->sham) ? cpu->sham / res->target[0].t0_ns : 0;
		sweep_result_free(res);
	}
	assert_true(unread > windows / 8);
	assert_true(known >= 10);
	assert_true(fabs(sum / (double)known - 0.3) < 0.01);
}

/* What is 0 everywhere is no test, and no unknown either. */
static void test_a_counter_that_never_counts_is_no_test(void **state)
{
	const struct world nothing = { 0 };
	struct sim_cfg sim = drifting(0);
	struct sweep_result *res = account(&sim, &nothing, 2);

	(void)state;
	assert_true(change(res, SIDE_DELAYED, NEVER)->sham == 0);
	assert_true(isnan(change(res, SIDE_DELAYED, NEVER)->p_none));
	assert_false(change(res, SIDE_DELAYED, NEVER)->significant);
	assert_true(res->n_tests <= SIDE_COUNT * (COUNTERS - 1));
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_effect_is_shown_in_one_family_of_twenty),
		cmocka_unit_test(test_a_hidden_delay_is_found_in_the_wait),
		cmocka_unit_test(test_lanes_are_averaged_as_the_injected_time),
		cmocka_unit_test(test_evidence_leaves_kappa_alone),
		cmocka_unit_test(test_a_window_that_was_not_read_is_no_zero),
		cmocka_unit_test(test_a_counter_that_never_counts_is_no_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
