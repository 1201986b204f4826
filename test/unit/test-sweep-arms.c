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
#include "sweep/stat.h"
#include "src/base/must.h"

/* Several targets in the same blocks: does each have an interval, and is it an honest one? */
#define MOST 5

static const char *const names[] = { "a", "b", "c", "d", "e" };

/* Each truth at each place. */
static double truth_of(size_t target, uint64_t seed)
{
	static const double truth[] = { 1, 0, 0.4, 0, 0.75 };

	return truth[(target + seed) % 5];
}

struct world {
	const char *name;
	double t0_ns, seconds, ar_sd, drift, stall_per_s;
};

static const struct world quiet = { "quiet", 100e3, 60, 0.005, 0.03, 0 };
static const struct world noisy = { "noisy", 100e3, 60, 0.03, 0.03, 0 };
static const struct world drifts = { "drift of 20 %", 100e3, 60, 0.01, 0.2, 0 };
static const struct world stalls = { "stalls", 100e3, 60, 0.01, 0.03, 1 };
static const struct world slow = { "items of 10 ms", 10e6, 60, 0.01, 0.03, 0 };

static struct sim_cfg program(const struct world *world, size_t n, uint64_t seed)
{
	struct sim_cfg sim = drifting(0);

	sim.n_targets = n;
	sim.t0_ns = world->t0_ns;
	sim.ar_sd = world->ar_sd;
	sim.drift = world->drift;
	sim.horizon_s = world->seconds;
	sim.stall_per_s = world->stall_per_s;
	sim.stall_s = 0.003;
	for (size_t i = 0; i < n; i++)
		sim.target[i] = (struct sim_target){ .kappa = truth_of(i, seed),
						     .hits = (double)(1 + i) };
	return sim;
}

#define OPEN_MOST 200

struct tally {
	size_t targets, known, held, critical, hidden, unproven;
	double half, longest;
	double open[OPEN_MOST]; /* half-widths of those that never are decided before the end */
	size_t n_open;
};

static bool stays_open(double truth)
{
	return truth > 0.1 && truth < 0.9;
}

static double half_of(const struct sweep_target *t)
{
	return (t->kappa.hi - t->kappa.lo) / 2;
}

static void tally_add(struct tally *tally, const struct sweep_target *t, double truth)
{
	tally->targets++;
	if (!isfinite(t->kappa.lo) || !isfinite(t->kappa.hi))
		return;
	tally->known++;
	tally->held += t->kappa.lo <= truth && truth <= t->kappa.hi;
	tally->half += half_of(t);
	if (stays_open(truth) && tally->n_open < OPEN_MOST)
		tally->open[tally->n_open++] = half_of(t);
	tally->critical += t->verdict == VERDICT_CRITICAL && truth < 0.5;
	tally->hidden += t->verdict == VERDICT_HIDDEN && truth > 0.1;
}

static const uint64_t given[] = { 4000, 16000 };

static struct drive_cfg a_sweep(const struct world *world, double seconds, bool doses)
{
	struct drive_cfg cfg = minute();

	cfg.time_ns = (uint64_t)(seconds * 1e9);
	if (doses && world->t0_ns < 1e6) {
		cfg.dose_ns = given;
		cfg.n_doses = 2;
	}
	return cfg;
}

static struct tally sweeps(const struct world *world, size_t n, size_t runs, bool doses)
{
	struct tally tally = { 0 };
	struct drive_cfg cfg = a_sweep(world, world->seconds, doses);

	for (uint64_t seed = 1; seed <= runs; seed++) {
		struct sim_cfg sim = program(world, n, seed);
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed * 7919 + n);

		for (size_t i = 0; i < n; i++)
			tally_add(&tally, &res->target[i], truth_of(i, seed));
		tally.longest = fmax(tally.longest, res->time_s / world->seconds);
		sweep_result_free(res);
	}
	printf("# %-15s %zu targets: %zu of %zu known, held %.1f %%, +- %.3f, false CRITICAL %zu, "
	       "HIDDEN %zu\n",
	       world->name, n, tally.known, tally.targets,
	       100 * (double)tally.held / (double)tally.known, tally.half / (double)tally.known,
	       tally.critical, tally.hidden);
	return tally;
}

static void honest(const struct world *world, size_t n, size_t runs)
{
	struct tally tally = sweeps(world, n, runs, false);

	assert_int_equal(tally.known, tally.targets);
	assert_true(tally.held * 100 >= tally.known * 92);
	assert_true(tally.held * 100 <= tally.known * 98);
	assert_true(tally.critical * 100 < tally.targets);
	assert_true(tally.hidden * 100 < tally.targets);
	assert_true(tally.longest <= 1);
}

static void test_each_has_an_honest_interval(void **state)
{
	static const struct world *const all[] = { &quiet, &noisy, &drifts, &stalls, &slow };

	(void)state;
	honest(&noisy, 1, 250);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		honest(all[i], 3, 80);
		honest(all[i], 5, 60);
	}
}

/* One after another, each in its part of the time. */
static struct tally in_turn(const struct world *world, size_t n, size_t runs, bool doses)
{
	struct tally tally = { 0 };
	struct drive_cfg cfg = a_sweep(world, world->seconds / (double)n, doses);

	for (uint64_t seed = 1; seed <= runs; seed++)
		for (size_t i = 0; i < n; i++) {
			struct sim_cfg sim = program(world, n, seed);
			struct sweep_result *res;

			sim.n_targets = 1;
			sim.target[0] = sim.target[i];
			res = sim_sweep(&sim, &cfg, seed * 7919 + i);
			tally_add(&tally, &res->target[0], truth_of(i, seed));
			sweep_result_free(res);
		}
	return tally;
}

/* With doses searched for: noise chooses smaller ones where there is less of it. */
static void test_together_is_narrower_than_in_turn(void **state)
{
	static const struct world *const all[] = { &noisy, &drifts, &slow };

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (size_t n = 3; n <= 5; n += 2) {
			struct tally both = sweeps(all[i], n, 30, false);
			struct tally turn = in_turn(all[i], n, 30, false);
			double half = both.half / (double)both.known;

			printf("# %-15s %zu targets in turn: +- %.3f\n", all[i]->name, n,
			       turn.half / (double)turn.known);
			assert_true(half < turn.half / (double)turn.known);
		}
}

/* With the same doses: the control is one for all, and the time is that of what is open. */
static void test_what_is_open_is_narrower_by_the_same_doses(void **state)
{
	static const struct world *const all[] = { &quiet, &noisy };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t n = 3; n <= 5; n += 2) {
			struct tally both = sweeps(all[i], n, 20, true);
			struct tally turn = in_turn(all[i], n, 20, true);
			double half = stat_median(both.open, both.n_open);
			double alone = stat_median(turn.open, turn.n_open);

			printf("# %-15s %zu targets, open, doses given: +- %.3f; in turn %.3f\n",
			       all[i]->name, n, half, alone);
			assert_true(half < 0.9 * alone);
		}
}

/* Two that are decided soon, and one near the threshold, which is not: it gets their time. */
static void test_the_time_goes_to_what_is_open(void **state)
{
	static const double truth[] = { 1, 0, 0.12 };
	struct drive_cfg cfg = minute();
	size_t held[3] = { 0 }, runs = 150, left = 0;
	double open = 0, decided = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= runs; seed++) {
		struct sim_cfg sim = program(&quiet, 3, seed);
		struct sweep_result *res;

		for (size_t i = 0; i < 3; i++)
			sim.target[i].kappa = truth[i];
		res = sim_sweep(&sim, &cfg, seed);
		for (size_t i = 0; i < 3; i++) {
			const struct sweep_target *t = &res->target[i];

			assert_true(t->blocks >= 8);
			held[i] += t->kappa.lo <= truth[i] && truth[i] <= t->kappa.hi;
		}
		open += (double)res->target[2].blocks;
		decided += (double)(res->target[0].blocks + res->target[1].blocks) / 2;
		left += res->target[1].blocks < res->target[2].blocks;
		assert_int_not_equal(res->target[2].verdict, VERDICT_CRITICAL);
		sweep_result_free(res);
	}
	printf("# decided ones have %.1f blocks, the open one %.1f; held %zu, %zu, %zu of %zu\n",
	       decided / (double)runs, open / (double)runs, held[0], held[1], held[2], runs);
	assert_true(open > 1.2 * decided);
	assert_true(left * 2 > runs);
	for (size_t i = 0; i < 3; i++)
		assert_true(held[i] * 100 >= runs * 91);
}

/*
 * A slack that is found: the rest of the time goes to a dose below it, of which it is open whether
 * it is felt. Where a tenth is felt, that is no reason to say more often that nothing is.
 */
static void test_the_time_goes_to_what_is_below_the_slack(void **state)
{
	static const double low[] = { 0, 0.1 };
	size_t runs = 200, held[2] = { 0 }, said[2] = { 0 }, last = 0;
	struct drive_cfg cfg = minute();
	double half = 0;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (uint64_t seed = 1; seed <= runs; seed++) {
			struct sim_cfg sim = drifting(1);
			struct sweep_result *res;
			const struct sweep_target *t;

			sim.target[0].slack_ns = 13e3;
			sim.target[0].low = low[i];
			res = sim_sweep(&sim, &cfg, seed);
			t = &res->target[0];
			held[i] += t->kappa.lo <= low[i] && low[i] <= t->kappa.hi;
			said[i] += t->verdict == VERDICT_SLACK;
			last += t->last_delay_ns > 0;
			half += low[i] > 0 ? 0 : half_of(t) / (double)runs;
			sweep_result_free(res);
		}
	printf("# slack: +- %.3f below it; held %zu, %zu; SLACK %zu, %zu; last blocks %zu\n", half,
	       held[0], held[1], said[0], said[1], last);
	assert_true(half < 0.07); /* 0.08 where all blocks have all doses */
	assert_true(held[0] * 100 >= runs * 92 && held[1] * 100 >= runs * 92);
	assert_true(said[0] * 100 >= runs * 70 && said[1] * 100 <= runs * 5);
}

/* A pipeline of 60 ms: what one target's delay leaves in it is felt in another's windows. */
static void test_the_guard_is_raised_for_all(void **state)
{
	size_t raised = 0, held = 0, of = 0;
	struct drive_cfg cfg = minute();

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct sim_cfg sim = program(&quiet, 3, seed);
		struct sweep_result *res;

		sim.lag_s = 0.06;
		res = sim_sweep(&sim, &cfg, seed);
		raised += res->plan.guard_s > 0.1;
		for (size_t i = 0; i < 3; i++, of++)
			held += res->target[i].kappa.lo <= truth_of(i, seed) &&
				truth_of(i, seed) <= res->target[i].kappa.hi;
		sweep_result_free(res);
	}
	printf("# lag of 60 ms: guard raised in %zu of 60, held %zu of %zu\n", raised, held, of);
	assert_true(raised >= 40);
	assert_true(held * 100 >= of * 75); /* 58 % where the guard stays as it is */
}

/* --- the machine --- */

struct crank {
	struct sim sim;
	struct sim_cfg cfg;
	struct drive *drive;
	struct drive_step step;
	struct drive_window window;
	struct sim_lanes lanes;
};

static void crank_open(struct crank *c, size_t n, double seconds)
{
	struct drive_cfg cfg = minute();

	*c = (struct crank){ .cfg = program(&quiet, n, 1) };
	cfg.n_targets = n;
	cfg.spec = names;
	cfg.seed = 3;
	cfg.time_ns = (uint64_t)(seconds * 1e9);
	cfg.lane_mode = LANE_THREAD;
	cfg.n_counters = 1;
	sim_open(&c->sim, &c->cfg, 1);
	assert_int_equal(drive_open(&cfg, &c->drive, NULL), 0);
}

static bool crank_next(struct crank *c)
{
	drive_next(c->drive, &c->step);
	if (c->step.what == DRIVE_DONE)
		return false;
	sim_window(&c->sim, &c->step, drive_treated(c->drive), &c->window, &c->lanes);
	return true;
}

/* Ctrl-C at any window: from its second whole block on a target has an interval. */
static void test_ended_at_any_window(void **state)
{
	struct crank c;
	size_t second = 0;

	(void)state;
	crank_open(&c, MOST, 20);
	drive_lane(c.drive, "engine", 1, 1);
	while (crank_next(&c)) {
		struct sweep_result *res;
		size_t with = 0;

		assert_int_equal(drive_take(c.drive, &c.window, NULL), 0);
		if (c.step.stage != STAGE_MAIN)
			continue;
		res = drive_end(c.drive);
		for (size_t i = 0; i < MOST; i++) {
			bool known = isfinite(half_of(&res->target[i]));

			assert_int_equal(known, res->target[i].blocks >= 2);
			with += known;
		}
		if (with == MOST && !second)
			second = res->n_windows;
		sweep_result_free(res);
	}
	drive_next(c.drive, &c.step);
	assert_true(second > 0);
	drive_close(c.drive);
}

/* The threads that call a target: 1 for the first, 2 for the second, ... each its own. */
static size_t threads_of(const bool *treated, size_t n, struct lane_count *lane, uint64_t hits,
			 uint64_t injected)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k <= i; k++, at++) {
			lane[at] = (struct lane_count){ .gone = 0 };
			if (treated[i])
				lane[at] = (struct lane_count){ hits, injected, 0, 0 };
		}
	return at;
}

/* Of the delayed side 1000 an item of each thread of a treated target. */
static void fill_counters(const bool *treated, size_t n, double items, double *counter)
{
	counter[SIDE_DELAYED] = counter[SIDE_OTHERS] = 0;
	for (size_t i = 0; i < n; i++)
		counter[SIDE_DELAYED] += treated[i] ? (double)(i + 1) * 1000 * items : 0;
}

/* A shared window has parts, each with the threads and the counters of one target alone. */
static void test_a_shared_window_is_told_in_parts(void **state)
{
	struct lane_count lane[1 + 3][6];
	double counter[1 + 3][SIDE_COUNT];
	struct drive_part part[3];
	struct sweep_result *res;
	size_t shared = 0;
	struct crank c;

	(void)state;
	crank_open(&c, 3, 30);
	for (int i = 0; i < 6; i++)
		drive_lane(c.drive, "engine", 1, 1 + i);
	while (crank_next(&c)) {
		uint64_t injected = c.lanes.count[0].injected_ns;
		const bool *treated = drive_treated(c.drive);

		c.window.lane = lane[3];
		c.window.n_lanes = threads_of(treated, 3, lane[3], 1000, injected);
		c.window.counter = counter[3];
		fill_counters(treated, 3, c.window.items, counter[3]);
		c.window.n_parts = drive_parts(c.drive);
		c.window.part = part;
		shared += c.window.n_parts > 1;
		for (size_t p = 0; p < c.window.n_parts; p++) {
			const bool *alone = drive_part_treated(c.drive, p);

			part[p] = (struct drive_part){ .lane = lane[p], .counter = counter[p] };
			part[p].n_lanes = threads_of(alone, 3, lane[p], 1000, 0);
			fill_counters(alone, 3, c.window.items, counter[p]);
			for (size_t i = 0; i < 3; i++)
				assert_true(!alone[i] || treated[i]);
		}
		assert_int_equal(drive_take(c.drive, &c.window, NULL), 0);
	}
	res = drive_end(c.drive);
	assert_true(shared > 20);
	for (size_t i = 0; i < 3; i++) {
		const struct sweep_target *t = &res->target[i];

		assert_true(fabs(t->lanes - (double)(i + 1)) < 1e-9);
		assert_true(fabs(t->hits_per_item / c.cfg.target[i].hits - 1) < 0.05);
		/* The same in SHAM and under a dose: the other targets' threads are not in it. An
		 * item of a lane costs 1000. */
		assert_true(fabs(t->change[SIDE_DELAYED].sham - 1000) < 1);
		assert_true(fabs(t->change[SIDE_DELAYED].dose - 1000) < 1);
		/* No dose is above --max-slowdown as one of its own lanes feels it: the function of
		 * one thread is not delayed by what the threads of all targets share. */
		assert_true(t->dose[t->n_doses - 1].delay_ns * c.cfg.target[i].hits /
				    (double)(i + 1) <
			    0.32 * c.cfg.t0_ns);
	}
	sweep_result_free(res);
	drive_close(c.drive);
}

static void test_wrong_parts_are_refused(void **state)
{
	struct drive_part part[2] = { 0 };
	struct crank c;

	(void)state;
	crank_open(&c, 3, 20);
	drive_lane(c.drive, "engine", 1, 1);
	while (crank_next(&c) && !drive_parts(c.drive))
		assert_int_equal(drive_take(c.drive, &c.window, NULL), 0);
	assert_int_equal(drive_parts(c.drive), 3);
	c.window.part = part;
	c.window.n_parts = 2;
	assert_int_equal(drive_take(c.drive, &c.window, NULL), -SB_EUSAGE);
	c.window.part = NULL;
	assert_int_equal(drive_take(c.drive, &c.window, NULL), 0);
	drive_close(c.drive);
}

/* --- the plan --- */

/* It is there with the first main block, and says about how narrow the intervals become. */
static void test_the_plan_says_what_comes(void **state)
{
	double near = 0, of = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct sim_cfg sim = program(&noisy, 3, seed);
		struct drive_cfg cfg = minute();
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed);

		assert_int_equal(res->plan.n_targets, 3);
		assert_true(res->plan.blocks >= 4 && res->plan.windows > 6 * res->plan.blocks);
		assert_true(res->plan.time_s < 60 && res->plan.time_s > 20);
		for (size_t i = 0; i < 3; i++) {
			const struct sweep_planned *p = &res->plan.target[i];
			const struct sweep_target *t = &res->target[i];

			assert_int_equal(p->target, i);
			assert_int_equal(p->n_doses, t->n_doses - 1);
			assert_true(p->delay_ns[0] == t->dose[1].delay_ns);
			near += half_of(t) < 2 * p->half_width && p->half_width < 2 * half_of(t);
			of++;
		}
		sweep_result_free(res);
	}
	printf("# the expected half-width is right to a factor of two in %.0f of %.0f\n", near, of);
	assert_true(near >= 0.7 * of);
}

static void test_no_plan_before_the_doses(void **state)
{
	struct crank c;

	(void)state;
	crank_open(&c, 2, 20);
	drive_lane(c.drive, "engine", 1, 1);
	while (crank_next(&c)) {
		assert_int_equal(drive_plan(c.drive) != NULL, c.step.stage >= STAGE_MAIN);
		assert_int_equal(drive_take(c.drive, &c.window, NULL), 0);
	}
	drive_close(c.drive);
}

/* Whole runs share their control, too: 8 of OFF, 16 of SHAM, and 8 of each dose of each target. */
static void test_whole_runs_share_their_control(void **state)
{
	struct sim_cfg sim = program(&quiet, 3, 1);
	struct drive_cfg cfg = drive_defaults();
	size_t arms[ARM_COUNT] = { 0 };
	struct sweep_result *res;

	(void)state;
	cfg.runs = true;
	cfg.n_runs = 8;
	res = sim_sweep(&sim, &cfg, 1);
	for (size_t i = 0; i < res->n_windows; i++)
		if (res->window[i].block >= 0)
			arms[res->window[i].arm]++;
	assert_int_equal(arms[ARM_OFF], 8);
	assert_int_equal(arms[ARM_SHAM], 16);
	assert_int_equal(arms[ARM_DOSE], 8 * 3 * 3);
	assert_int_equal(res->plan.windows, 8 + 16 + 8 * 3 * 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(res->target[i].blocks, 8);
		assert_true(isfinite(half_of(&res->target[i])));
	}
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_has_an_honest_interval),
		cmocka_unit_test(test_together_is_narrower_than_in_turn),
		cmocka_unit_test(test_what_is_open_is_narrower_by_the_same_doses),
		cmocka_unit_test(test_the_time_goes_to_what_is_open),
		cmocka_unit_test(test_the_time_goes_to_what_is_below_the_slack),
		cmocka_unit_test(test_the_guard_is_raised_for_all),
		cmocka_unit_test(test_ended_at_any_window),
		cmocka_unit_test(test_a_shared_window_is_told_in_parts),
		cmocka_unit_test(test_wrong_parts_are_refused),
		cmocka_unit_test(test_the_plan_says_what_comes),
		cmocka_unit_test(test_no_plan_before_the_doses),
		cmocka_unit_test(test_whole_runs_share_their_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
