/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sweep-sim.h"

/* The machine of sweep/drive.h itself: its steps, its end at any time, what it refuses. */

static void test_doses_given_are_used_as_they_are(void **state)
{
	static const uint64_t doses[] = { 4000, 1000, 2000, 1000 };
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;

	(void)state;
	cfg.dose_ns = doses;
	cfg.n_doses = 4;
	res = sim_sweep(&sim, &cfg, 1);
	assert_int_equal(res->target[0].n_doses, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(res->target[0].dose[i].delay_ns, i ? 500u << i : 0);
	for (size_t i = 0; i < res->n_windows; i++)
		assert_true(res->window[i].stage != STAGE_ESCALATE);
	assert_true(fabs(res->target[0].dose[3].x_ns - 8000) < 100); /* two hits an item */
	sweep_result_free(res);
}

/* Hits times dose and what was injected must agree, whatever kappa looks like. */
static void test_delays_that_were_not_given_judge_nothing(void **state)
{
	static const double given[] = { 1.0, 0.9, 1.4 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct sim_cfg sim = drifting(1);
		struct drive_cfg cfg = minute();
		struct sweep_result *res;

		sim.given = given[i];
		res = sim_sweep(&sim, &cfg, 1);
		assert_true(fabs(res->target[0].dose_given - given[i]) < 0.01);
		if (i)
			assert_int_equal(res->target[0].verdict, VERDICT_INVALID);
		else
			assert_int_equal(res->target[0].verdict, VERDICT_CRITICAL);
		if (i == 2)
			assert_non_null(strstr(res->target[0].reason, "140 %"));
		sweep_result_free(res);
	}
}

static void test_same_seed_same_steps(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *a, *b, *c;

	(void)state;
	a = sim_sweep(&sim, &cfg, 7);
	b = sim_sweep(&sim, &cfg, 7);
	c = sim_sweep(&sim, &cfg, 8);
	assert_int_equal(a->n_windows, b->n_windows);
	for (size_t i = 0; i < a->n_windows; i++) {
		assert_int_equal(a->window[i].arm, b->window[i].arm);
		assert_int_equal(a->window[i].end_ns, b->window[i].end_ns);
	}
	assert_true(a->target[0].kappa.lo == b->target[0].kappa.lo);
	assert_true(a->target[0].kappa.lo != c->target[0].kappa.lo);
	sweep_result_free(a);
	sweep_result_free(b);
	sweep_result_free(c);
}

/* Main blocks of which every window was window: SHAM and each dose twice. */
static size_t whole_blocks(const struct sweep_result *res)
{
	size_t whole = 0, in_block = 0;

	for (size_t i = 0; i < res->n_windows; i++) {
		const struct sweep_window *win = &res->window[i];

		if (win->stage != STAGE_MAIN || win->label >= 0 || win->arm == ARM_OFF)
			continue;
		if (i && win[-1].block != win->block)
			in_block = 0;
		whole += ++in_block == 2 * res->target[0].n_doses;
	}
	return whole;
}

/* Windows that keep in step with a counter's updates would all round alike. */
static void test_guards_are_dithered(void **state)
{
	static const char *const spec[] = { "a" };
	struct sim_cfg sim_cfg = drifting(1);
	struct drive_cfg cfg = minute();
	struct drive_step step;
	struct drive_window window;
	struct sim_lanes lanes;
	uint64_t least = UINT64_MAX, most = 0;
	struct drive *drive;
	struct sim sim;

	(void)state;
	cfg.n_targets = 1;
	cfg.spec = spec;
	sim_cfg.period_s = 0.1;
	sim_open(&sim, &sim_cfg, 1);
	assert_int_equal(drive_open(&cfg, &drive, NULL), 0);
	drive_lane(drive, "engine", 1, 1);
	for (drive_next(drive, &step); step.what == DRIVE_WINDOW; drive_next(drive, &step)) {
		if (step.stage == STAGE_MAIN && step.guard_ns < 100000000)
			least = step.guard_ns < least ? step.guard_ns : least; /* same arm again */
		if (step.stage == STAGE_MAIN && step.guard_ns > most)
			most = step.guard_ns;
		sim_window(&sim, &step, drive_treated(drive), &window, &lanes);
		drive_take(drive, &window, NULL);
	}
	assert_true(least < 30000000 && most > 170000000);
	drive_close(drive);
}

/* How far apart the guards of a dose's windows lie, when only it is given. */
static double spread_of_guards(uint64_t dose_ns)
{
	static const char *const spec[] = { "a" };
	struct sim_cfg sim_cfg = drifting(1);
	struct drive_cfg cfg = minute();
	uint64_t least = UINT64_MAX, most = 0;
	struct drive_step step;
	struct drive_window window;
	struct sim_lanes lanes;
	struct drive *drive;
	struct sim sim;

	cfg.n_targets = 1;
	cfg.spec = spec;
	cfg.dose_ns = &dose_ns;
	cfg.n_doses = 1;
	cfg.guard_ns = 1000000;
	sim_open(&sim, &sim_cfg, 1);
	assert_int_equal(drive_open(&cfg, &drive, NULL), 0);
	drive_lane(drive, "engine", 1, 1);
	for (drive_next(drive, &step); step.what == DRIVE_WINDOW; drive_next(drive, &step)) {
		if (step.stage == STAGE_MAIN && step.arm == ARM_DOSE && step.guard_ns >= 1000000) {
			least = step.guard_ns < least ? step.guard_ns : least;
			most = step.guard_ns > most ? step.guard_ns : most;
		}
		sim_window(&sim, &step, drive_treated(drive), &window, &lanes);
		drive_take(drive, &window, NULL);
	}
	assert_true(most > 0);
	drive_close(drive);
	return (double)(most - least);
}

/* Few items fit into a window of a dose of many items' time: begun at one phase each time, it would
 * hold one too many throughout, with a narrow interval that is wrong. */
static void test_long_items_do_not_keep_in_step_with_windows(void **state)
{
	(void)state;
	assert_true(spread_of_guards(1000) == 0);
	assert_true(spread_of_guards(5000000) > 2500000);
}

/* Ctrl-C after any window: what is known, and nothing that is not. */
static void test_ended_at_any_window(void **state)
{
	static const char *const spec[] = { "a" };
	struct sim_cfg sim_cfg = drifting(1);
	struct drive_cfg cfg = minute();
	struct drive_step step;
	struct drive_window window;
	struct sim_lanes lanes;
	struct drive *drive;
	struct sim sim;

	(void)state;
	cfg.n_targets = 1;
	cfg.spec = spec;
	cfg.time_ns = 20000000000u;
	sim_open(&sim, &sim_cfg, 1);
	assert_int_equal(drive_open(&cfg, &drive, NULL), 0);
	drive_lane(drive, "engine", 1, 1);
	for (int i = 0;; i++) {
		struct sweep_result *res = drive_end(drive);

		assert_int_equal(res->n_windows, i);
		assert_int_equal(res->target[0].blocks, whole_blocks(res));
		assert_true(res->target[0].blocks >= 2 ||
			    res->target[0].verdict == VERDICT_INCONCLUSIVE);
		drive_next(drive, &step);
		assert_true(res->ended_early == (step.what == DRIVE_WINDOW));
		sweep_result_free(res);
		if (step.what == DRIVE_DONE)
			break;
		sim_window(&sim, &step, drive_treated(drive), &window, &lanes);
		assert_int_equal(drive_take(drive, &window, NULL), 0);
	}
	drive_close(drive);
}

static void test_what_cannot_be_is_refused(void **state)
{
	static const char *const spec[] = { "a" };
	struct drive_cfg cfg = minute();
	uint64_t zero = 0, hits = 1;
	struct drive_window window = {
		.time_ns = 1000, .now_ns = 5000, .items = 1, .hits = &hits, .busy = NAN
	};
	struct drive *drive;

	(void)state;
	assert_int_equal(drive_open(&cfg, &drive, NULL), -SB_EUSAGE); /* no target */
	cfg.n_targets = 1;
	cfg.spec = spec;
	cfg.dose_ns = &zero;
	cfg.n_doses = 1;
	assert_int_equal(drive_open(&cfg, &drive, NULL), -SB_EUSAGE);
	cfg.n_doses = 0;
	cfg.control = 1;
	assert_int_equal(drive_open(&cfg, &drive, NULL), -SB_EUSAGE);
	cfg.control = DRIVE_NONE;
	cfg.time_ns = 0;
	assert_int_equal(drive_open(&cfg, &drive, NULL), -SB_EUSAGE);
	cfg.time_ns = 1000000000;
	cfg.response = true; /* windows are adjusted, and a quantile is that of many */
	cfg.quantile = 0.99;
	cfg.n_adjust = 1;
	assert_int_equal(drive_open(&cfg, &drive, NULL), -SB_EUSAGE);
	cfg.n_adjust = 0;
	cfg.response = false; /* of what? */
	assert_int_equal(drive_open(&cfg, &drive, NULL), -SB_EUSAGE);
	cfg.quantile = 0;
	assert_int_equal(drive_open(&cfg, &drive, NULL), 0);
	assert_int_equal(drive_take(drive, &window, NULL), 0);
	window.now_ns = 4000; /* the clock */
	assert_int_equal(drive_take(drive, &window, NULL), -SB_EUSAGE);
	window.now_ns = 6000;
	window.items = -1; /* a source that was reset */
	assert_int_equal(drive_take(drive, &window, NULL), -SB_EUSAGE);
	window.items = NAN;
	assert_int_equal(drive_take(drive, &window, NULL), -SB_EUSAGE);
	window.items = 1;
	window.time_ns = 0;
	assert_int_equal(drive_take(drive, &window, NULL), -SB_EUSAGE);
	drive_close(drive);
}

/* The control has windows, and no row among the targets: theirs are numbered without it. */
static void test_control_has_no_row(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;
	size_t control = 0, main_blocks = 0;

	(void)state;
	sim.n_targets = 2;
	sim.target[1] = (struct sim_target){ .kappa = 0, .hits = 1 };
	cfg.control = 0;
	res = sim_sweep(&sim, &cfg, 1);
	assert_int_equal(res->n_targets, 1);
	assert_string_equal(res->target[0].spec, "b");
	for (size_t i = 0; i < res->n_windows; i++) {
		control += res->window[i].stage == STAGE_CONTROL;
		main_blocks += res->window[i].stage == STAGE_MAIN;
		if (res->window[i].stage == STAGE_MAIN)
			assert_int_equal(res->window[i].target, 0);
		else if (res->window[i].stage == STAGE_CONTROL)
			assert_int_equal(res->window[i].target, -1);
	}
	assert_true(control >= 32 && main_blocks >= 32);
	assert_int_equal(res->target[0].verdict, VERDICT_HIDDEN);
	sweep_result_free(res);
	cfg.control_too = true; /* asked for as a target as well */
	res = sim_sweep(&sim, &cfg, 1);
	assert_int_equal(res->n_targets, 2);
	assert_int_equal(res->target[0].verdict, VERDICT_CRITICAL);
	assert_true(res->gates.control_ok);
	sweep_result_free(res);
}

/* Switching and reading take their time too: no block is lost to it, and no budget overrun. */
static void test_overhead_is_counted(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();

	(void)state;
	sim.overhead_s = 0.02;
	for (uint64_t seed = 1; seed <= 10; seed++)
		for (uint64_t seconds = 15; seconds <= 60; seconds *= 2) {
			struct sweep_result *res;

			cfg.time_ns = seconds * 1000000000u;
			res = sim_sweep(&sim, &cfg, seed);
			assert_true(res->target[0].blocks >= 8);
			assert_true(res->time_s <= (double)seconds);
			sweep_result_free(res);
		}
}

/* --- the targets' own time --- */

static const bool first_can[SIM_TARGETS] = { true };

static void test_own_time_is_taken_before_any_delay(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;
	size_t own = 0, last_own = 0, first_dose = SIZE_MAX;

	(void)state;
	sim.n_targets = 2;
	sim.target[0].own_ns = 30e3;
	sim.target[1] = (struct sim_target){ .kappa = 0, .hits = 1, .own_ns = 5e3 };
	cfg.can_time = first_can;
	res = sim_sweep(&sim, &cfg, 1);
	for (size_t i = 0; i < res->n_windows; i++) {
		const struct sweep_window *win = &res->window[i];

		if (win->stage == STAGE_OWN) {
			assert_int_equal(win->arm, ARM_SHAM);
			last_own = i;
			own++;
		} else if (win->arm == ARM_DOSE && first_dose == SIZE_MAX) {
			first_dose = i;
		}
	}
	assert_true(own >= 8 && last_own < first_dose);
	assert_true(fabs(res->target[0].inclusive_ns.est - 30e3) < 600);
	assert_true(isnan(res->target[1].inclusive_ns.est));
	assert_string_equal(res->target[1].gain_reason, "its own time was not measured");
	assert_true(res->time_s <= 60);
	sweep_result_free(res);
	cfg.can_time = NULL;
	res = sim_sweep(&sim, &cfg, 1);
	for (size_t i = 0; i < res->n_windows; i++)
		assert_true(res->window[i].stage != STAGE_OWN);
	sweep_result_free(res);
}

/* Whole runs: a few of their own. */
static void test_own_time_of_whole_runs(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = drive_defaults();
	struct sweep_result *res;
	size_t own = 0;

	(void)state;
	sim.target[0].own_ns = 30e3;
	cfg.can_time = first_can;
	cfg.runs = true;
	cfg.n_runs = 8;
	res = sim_sweep(&sim, &cfg, 1);
	for (size_t i = 0; i < res->n_windows; i++)
		own += res->window[i].stage == STAGE_OWN;
	assert_int_equal(own, 3);
	/* Of a run, which is an item. */
	assert_true(fabs(res->target[0].inclusive_ns.est / SIM_RUN_ITEMS - 30e3) < 600);
	assert_false(isnan(res->target[0].gain_ceiling_ns.est));
	sweep_result_free(res);
}

static bool within(const struct sweep_estimate *e, double truth)
{
	return e->lo <= truth && truth <= e->hi;
}

/* Ranks spend it side by side; the ceiling of what half of its delay is felt of is half of it. */
static void gains(int lanes, double kappa)
{
	struct sim_cfg sim = drifting(kappa);
	struct drive_cfg cfg = minute();
	size_t held = 0, own_held = 0;

	sim.target[0].own_ns = 30e3;
	sim.lanes = lanes;
	cfg.can_time = first_can;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed);
		const struct sweep_target *target = &res->target[0];

		own_held += within(&target->inclusive_ns, 30e3);
		held += within(&target->gain_ceiling_ns, kappa * 30e3);
		assert_true(target->gain_ceiling_ns.lo >= 0);
		sweep_result_free(res);
	}
	printf("# %d lanes, kappa %.2g: own time held in %zu of 60, gain ceiling in %zu\n", lanes,
	       kappa, own_held, held);
	assert_true(own_held >= 52 && held >= 52);
}

static void test_gain_ceiling_is_kappa_times_own_time(void **state)
{
	(void)state;
	gains(1, 0.5);
	gains(4, 1);
	gains(1, 0);
}

/*
 * What a function takes is the most that its removal can bring, unless a delay is shown to be
 * amplified; then the time per item is. Half of the estimates of a kappa of 1 lie above it.
 */
static void ceilings(double kappa, double own_ns, size_t *above, size_t *amplified, size_t *whole)
{
	struct sim_cfg sim = drifting(kappa);
	struct drive_cfg cfg = minute();

	*above = *amplified = *whole = 0;
	sim.target[0].own_ns = own_ns;
	cfg.can_time = first_can;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed);
		const struct sweep_target *t = &res->target[0];
		const struct sweep_estimate *gain = &t->gain_ceiling_ns, *own = &t->inclusive_ns;

		*above += t->kappa.est > 1;
		*amplified += t->kappa.lo > 1;
		*whole += gain->est == t->t0_ns;
		assert_true(gain->lo <= gain->est && gain->est <= gain->hi);
		assert_true(gain->hi <= t->t0_ns);
		if (t->kappa.lo > 1)
			assert_true(gain->est > own->est);
		else
			assert_true(gain->est <= own->est && gain->hi <= own->hi);
		sweep_result_free(res);
	}
}

static void test_gain_ceiling_is_bound_by_own_time(void **state)
{
	size_t above, amplified, whole;

	(void)state;
	ceilings(1, 30e3, &above, &amplified, &whole);
	assert_true(above >= 4 && amplified <= 3 && !whole);
	ceilings(2, 30e3, &above, &amplified, &whole);
	assert_true(amplified == 20 && !whole);
	ceilings(2, 80e3, &above, &amplified, &whole); /* of 100 us */
	assert_int_equal(whole, 20);
}

static void no_own_time(struct sim_cfg *sim, const char *why)
{
	struct drive_cfg cfg = minute();
	struct sweep_result *res;

	cfg.can_time = first_can;
	res = sim_sweep(sim, &cfg, 1);
	assert_true(isnan(res->target[0].inclusive_ns.est));
	assert_true(isnan(res->target[0].gain_ceiling_ns.est));
	assert_non_null(strstr(res->target[0].inclusive_reason, why));
	assert_non_null(strstr(res->target[0].gain_reason, why));
	assert_int_equal(res->target[0].verdict, VERDICT_CRITICAL);
	assert_true(res->time_s <= 60);
	sweep_result_free(res);
}

static void test_own_time_that_was_not_seen_is_unknown(void **state)
{
	struct sim_cfg sim = drifting(1);

	(void)state;
	sim.target[0].own_ns = 30e3;
	sim.target[0].missed = 1;
	no_own_time(&sim, "100 % of its calls");
	sim.target[0].missed = 0.2;
	no_own_time(&sim, "20 % of its calls");
	sim.target[0].missed = 0;
	sim.never_timed = true;
	no_own_time(&sim, "did not begin in time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doses_given_are_used_as_they_are),
		cmocka_unit_test(test_delays_that_were_not_given_judge_nothing),
		cmocka_unit_test(test_same_seed_same_steps),
		cmocka_unit_test(test_guards_are_dithered),
		cmocka_unit_test(test_long_items_do_not_keep_in_step_with_windows),
		cmocka_unit_test(test_control_has_no_row),
		cmocka_unit_test(test_overhead_is_counted),
		cmocka_unit_test(test_own_time_is_taken_before_any_delay),
		cmocka_unit_test(test_own_time_of_whole_runs),
		cmocka_unit_test(test_gain_ceiling_is_kappa_times_own_time),
		cmocka_unit_test(test_gain_ceiling_is_bound_by_own_time),
		cmocka_unit_test(test_own_time_that_was_not_seen_is_unknown),
		cmocka_unit_test(test_ended_at_any_window),
		cmocka_unit_test(test_what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
