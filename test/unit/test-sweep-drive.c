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

/*
 * Whole sweeps of simulated programs (sweep-sim.h) through the machine that live sweeps use: is the
 * verdict right, is the budget kept, is what cannot be known called unknown?
 */
#define RUNS 40

struct tally {
	size_t runs, verdict[VERDICT_COUNT], slack[SLACK_COUNT], load[LOAD_COUNT];
	size_t held, slack_held, slack_near, unproven, sham_held, hits_differ;
	double longest_s, width;
};

static bool holds(const struct sweep_estimate *e, double truth)
{
	return e->lo <= truth && truth <= e->hi;
}

static void tally_add(struct tally *tally, const struct sim_cfg *cfg,
		      const struct sweep_result *res, double kappa)
{
	const struct sweep_target *target = &res->target[0];
	double s = cfg->target[0].slack_ns;

	tally->runs++;
	tally->verdict[target->verdict]++;
	tally->slack[target->slack_kind]++;
	tally->load[res->gates.load]++;
	tally->held += holds(&target->kappa, kappa);
	tally->slack_held += holds(&target->slack_ns, s);
	tally->slack_near += fabs(target->slack_ns.est - s) <= 0.1 * s;
	tally->unproven += res->gates.unproven;
	tally->sham_held += holds(&res->gates.sham_ns, cfg->sham_ns);
	/* A target's item without the hooks is what they are shown to cost shorter. */
	assert_true(res->target[0].plain_ns ==
		    res->target[0].t0_ns -
			    (res->gates.sham_ns.lo > 0 ? res->gates.sham_ns.est : 0));
	tally->hits_differ += target->hits_differ;
	tally->longest_s = fmax(tally->longest_s, res->time_s);
	tally->width += (target->kappa.hi - target->kappa.lo) / 2;
}

static struct tally sweeps(const char *name, const struct sim_cfg *cfg,
			   const struct drive_cfg *drive, double kappa, size_t runs)
{
	struct tally tally = { 0 };

	for (size_t i = 0; i < runs; i++) {
		struct sweep_result *res = sim_sweep(cfg, drive, 1 + i);

		tally_add(&tally, cfg, res, kappa);
		sweep_result_free(res);
	}
	printf("# %-20s held %zu of %zu, +- %.3f;", name, tally.held, runs,
	       tally.width / (double)runs);
	for (unsigned int v = 0; v < VERDICT_COUNT; v++)
		if (tally.verdict[v])
			printf(" %s %zu", sweep_verdict_name(v), tally.verdict[v]);
	printf("; A and A differed in %zu, %.1f s\n", tally.unproven, tally.longest_s);
	return tally;
}

/* Too short for 8 blocks: an interval all the same, which holds the truth, and no wrong verdict. */
static void test_a_few_blocks_have_an_honest_interval(void **state)
{
	static const double truth[] = { 0, 0.25, 1 };
	struct drive_cfg cfg = minute();
	size_t n = 0, few = 0, held = 0, wrong = 0;

	(void)state;
	for (size_t k = 0; k < 3; k++)
		for (uint64_t seed = 1; seed <= 10 * RUNS; seed++) {
			struct sim_cfg sim = drifting(truth[k]);
			struct sweep_target *target;
			struct sweep_result *res;

			sim.t0_ns = 8e6;
			sim.stall_per_s = 0.5;
			sim.stall_s = 0.01;
			cfg.time_ns = 1500000000u + seed % 5 * 500000000u;
			res = sim_sweep(&sim, &cfg, seed);
			target = &res->target[0];
			n++;
			if (target->blocks >= 2 && target->blocks < 8) {
				few++;
				held += holds(&target->kappa, truth[k]);
				wrong += target->verdict == VERDICT_HIDDEN && truth[k] > 0.1;
				wrong += target->verdict == VERDICT_CRITICAL && truth[k] < 0.5;
			}
			sweep_result_free(res);
		}
	printf("# few blocks: %zu of %zu, held %zu, wrong %zu\n", few, n, held, wrong);
	assert_true(few >= n / 4);
	assert_true(held >= few * 92 / 100);
	assert_true(wrong * 100 <= few);
}

/* 60 runs: 95 % is 57; fewer than 52 come about once in 300. */
static void right(const struct tally *tally, enum sweep_verdict verdict)
{
	assert_true(tally->held >= RUNS * 52 / 60);
	assert_true(tally->verdict[verdict] >= RUNS * 57 / 60);
	assert_true(tally->unproven <= 5);
	assert_true(tally->longest_s <= 60);
}

static void test_serial_is_critical(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally = sweeps("serial", &sim, &cfg, 1, RUNS);

	(void)state;
	right(&tally, VERDICT_CRITICAL);
	assert_true(tally.slack[SLACK_NONE] >= RUNS * 57 / 60);
}

static void test_hidden_is_hidden(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct drive_cfg cfg = minute();
	struct tally tally = sweeps("hidden", &sim, &cfg, 0, RUNS);

	(void)state;
	right(&tally, VERDICT_HIDDEN);
	assert_int_equal(tally.verdict[VERDICT_CRITICAL] + tally.verdict[VERDICT_PARTIAL], 0);
	assert_true(tally.slack[SLACK_BEYOND] >= RUNS * 57 / 60);
}

static void test_partial_is_partial(void **state)
{
	struct sim_cfg sim = drifting(0.4);
	struct drive_cfg cfg = minute();
	struct tally tally = sweeps("partial", &sim, &cfg, 0.4, RUNS);

	(void)state;
	right(&tally, VERDICT_PARTIAL);
}

static void test_convoy_is_critical_and_above_one(void **state)
{
	struct sim_cfg sim = drifting(1.8);
	struct drive_cfg cfg = minute();
	struct tally tally = sweeps("convoy", &sim, &cfg, 1.8, RUNS);

	(void)state;
	right(&tally, VERDICT_CRITICAL);
}

/* At the threshold itself HIDDEN is false by definition. */
static void test_false_hidden_is_rare(void **state)
{
	struct sim_cfg sim = drifting(0.1);
	struct drive_cfg cfg = minute();
	struct tally tally = sweeps("at the threshold", &sim, &cfg, 0.1, 2 * RUNS);

	(void)state;
	assert_true(tally.verdict[VERDICT_HIDDEN] <= 8); /* 2.5 % of 120: 3 */
	assert_int_equal(tally.verdict[VERDICT_CRITICAL], 0);
}

static void test_slack_is_found_and_the_function_hidden(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.target[0].slack_ns = 15e3;
	tally = sweeps("slack 15 us", &sim, &cfg, 0, RUNS);
	assert_true(tally.slack[SLACK_FOUND] >= RUNS * 57 / 60);
	assert_true(tally.slack_near >= RUNS * 57 / 60);
	assert_true(tally.slack_held >= RUNS * 52 / 60);
	assert_true(tally.held >= RUNS * 52 / 60);
	assert_true(tally.verdict[VERDICT_SLACK] >= RUNS * 56 / 60);
	assert_int_equal(tally.verdict[VERDICT_CRITICAL], 0);
}

/*
 * Items of 4 ms and two targets leave no time to search for doses. The largest dose alone would
 * show neither a part nor a slack, and the latter as a kappa of about 1 - slack / dose.
 */
static void test_unprobed_doses_tell_a_part_from_a_slack(void **state)
{
	struct sim_cfg sim = sim_defaults();
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	cfg.time_ns = 20000000000u;
	sim.t0_ns = 4e6;
	sim.item_cv = 0.1;
	sim.overhead_s = 0.004;
	sim.n_targets = 2;
	sim.target[1] = (struct sim_target){ .kappa = 1, .hits = 1 };
	sim.target[0] = (struct sim_target){ .kappa = 0.4, .hits = 1 };
	tally = sweeps("a part, 20 s", &sim, &cfg, 0.4, RUNS);
	right(&tally, VERDICT_PARTIAL);
	sim.target[0] = (struct sim_target){ .kappa = 1, .hits = 1, .slack_ns = 0.6e6 };
	tally = sweeps("slack of 15 %, 20 s", &sim, &cfg, 0, RUNS);
	assert_true(tally.held >= RUNS * 52 / 60);
	assert_int_equal(tally.verdict[VERDICT_CRITICAL] + tally.verdict[VERDICT_PARTIAL], 0);
}

static void test_ranks_and_roles(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.lanes = 4;
	tally = sweeps("4 ranks", &sim, &cfg, 1, RUNS);
	right(&tally, VERDICT_CRITICAL);
	sim.lanes = 2;
	sim.roles = 2;
	tally = sweeps("2 roles of 2", &sim, &cfg, 1, RUNS);
	right(&tally, VERDICT_CRITICAL);
}

/*
 * Two stages that join with a slack of 15 us: one dose of 30 us is felt by half, which is no part
 * of each delay.
 */
static void test_one_dose_is_no_part(void **state)
{
	static const uint64_t dose[] = { 30000 };
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.target[0].slack_ns = 15e3;
	sim.target[0].hits = 1;
	cfg.dose_ns = dose;
	cfg.n_doses = 1;
	tally = sweeps("one dose", &sim, &cfg, 0.5, RUNS);
	assert_int_equal(tally.verdict[VERDICT_PARTIAL], 0);
	assert_true(tally.verdict[VERDICT_INCONCLUSIVE] >= RUNS * 55 / 60);
}

/* The bottleneck is critical, whatever comes before and after it is hidden, and by how much. */
static void test_pipeline_of_three_stages(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct drive_cfg cfg = minute();
	size_t right = 0, wrong = 0, near = 0, held[SIM_STAGES] = { 0 };

	(void)state;
	sim_pipeline(&sim);
	sim.n_targets = SIM_STAGES;
	cfg.time_ns *= SIM_STAGES;
	sim.horizon_s *= SIM_STAGES;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed);

		for (size_t i = 0; i < SIM_STAGES; i++) {
			enum sweep_verdict v = res->target[i].verdict;

			held[i] += holds(&res->target[i].kappa, i == 1);
			right += v == (i == 1 ? VERDICT_CRITICAL :
				       i == 2 ? VERDICT_SLACK :
						VERDICT_HIDDEN);
			wrong += i == 1 ? v == VERDICT_HIDDEN || v == VERDICT_SLACK :
					  v == VERDICT_CRITICAL;
		}
		near += fabs(res->target[2].slack_ns.est - 15e3) <= 1.5e3;
		sweep_result_free(res);
	}
	printf("# pipeline             held %zu, %zu, %zu of %d; %zu of %d verdicts right, slack "
	       "near in "
	       "%zu\n",
	       held[0], held[1], held[2], RUNS, right, SIM_STAGES * RUNS, near);
	for (size_t i = 0; i < SIM_STAGES; i++)
		assert_true(held[i] >= RUNS * 52 / 60);
	assert_true(right >= SIM_STAGES * RUNS * 56 / 60);
	assert_int_equal(wrong, 0);
	assert_true(near >= RUNS * 55 / 60);
}

/* Each item bears a part of the step's fixed cost, and fewer items more of it: kappa above 1. */
static void test_adaptive_batcher(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim_batcher(&sim);
	tally = sweeps("adaptive batcher", &sim, &cfg, SIM_BATCHER_KAPPA, RUNS);
	right(&tally, VERDICT_CRITICAL);
	assert_true(tally.hits_differ >= RUNS * 55 / 60); /* a call for fewer items */
}

/* A fifth of its speed is lost over the minute: blocks do not mind. */
static void test_a_program_that_drifts(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.drift = 0.2;
	tally = sweeps("drift of 20 %", &sim, &cfg, 1, RUNS);
	right(&tally, VERDICT_CRITICAL);
}

static void test_quantised_progress(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.period_s = 0.1;
	tally = sweeps("every 100 ms", &sim, &cfg, 1, RUNS);
	right(&tally, VERDICT_CRITICAL);
}

static void test_heavy_tails(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.stall_per_s = 1;
	sim.stall_s = 0.003;
	tally = sweeps("stalls", &sim, &cfg, 0, RUNS);
	assert_true(tally.held >= RUNS * 52 / 60);
	assert_int_equal(tally.verdict[VERDICT_CRITICAL] + tally.verdict[VERDICT_PARTIAL], 0);
}

/* A pipeline of 60 ms: without a longer guard an arm begins with what the last one left. */
static void test_guard_is_raised_for_a_deep_pipeline(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.ar_sd = 0.005;
	sim.lag_s = 0.06;
	tally = sweeps("lag 60 ms", &sim, &cfg, 1, RUNS);
	assert_true(tally.held >= RUNS * 45 / 60);
}

static void test_cost_of_the_hook_is_measured(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.sham_ns = 2000;
	tally = sweeps("hook of 2 us", &sim, &cfg, 1, RUNS);
	right(&tally, VERDICT_CRITICAL);
	assert_true(tally.sham_held >= RUNS * 52 / 60);
}

static void test_absorbed_delay_is_flagged(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	tally = sweeps("same hits", &sim, &cfg, 1, RUNS);
	assert_true(tally.hits_differ <= 2);
	sim.absorb = 2;
	tally = sweeps("fewer hits", &sim, &cfg, 1, RUNS);
	assert_true(tally.hits_differ >= RUNS * 55 / 60);
}

/* --- load that arrives at its own rate --- */

static struct sim_cfg open_loop(double arrivals)
{
	struct sim_cfg sim = drifting(1);

	sim.arrivals_per_s = arrivals; /* 10000 a second is what it can serve */
	sim.poisson = true;
	return sim;
}

static void test_open_loop_is_invalid_by_the_positive_control(void **state)
{
	struct sim_cfg sim = open_loop(6000);
	struct drive_cfg cfg = minute();
	struct tally tally;

	(void)state;
	sim.n_targets = 2;
	sim.target[1] = (struct sim_target){ .kappa = 1, .hits = 1 };
	cfg.control = 1;
	tally = sweeps("open loop, control", &sim, &cfg, 0, RUNS);
	assert_true(tally.verdict[VERDICT_INVALID] >= RUNS * 57 / 60);
	sim.arrivals_per_s = 0;
	tally = sweeps("closed, control", &sim, &cfg, 1, RUNS);
	right(&tally, VERDICT_CRITICAL);
	assert_true(tally.load[LOAD_CLOSED] >= RUNS * 58 / 60);
	sim.target[1].kappa =
		0.75; /* a control that is none: its delay is felt by three quarters */
	tally = sweeps("wrong control", &sim, &cfg, 1, RUNS);
	assert_true(tally.verdict[VERDICT_INVALID] >= RUNS * 50 / 60);
}

static void test_open_loop_is_right_by_its_response(void **state)
{
	struct sim_cfg sim = open_loop(3000);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;
	size_t critical = 0;

	(void)state;
	cfg.response = true;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		res = sim_sweep(&sim, &cfg, seed);
		critical += res->target[0].verdict == VERDICT_CRITICAL;
		sweep_result_free(res);
	}
	assert_true(critical >= RUNS * 55 / 60);
}

/* 20 tokens to a request: what is injected is that of a request, as the response is. */
static void test_a_response_of_many_items(void **state)
{
	struct sim_cfg sim = open_loop(1000);
	struct drive_cfg cfg = minute();
	size_t held = 0;

	(void)state;
	cfg.response = true;
	sim.items_each = 20;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed);
		const struct sweep_estimate *kappa = &res->target[0].kappa;

		held += kappa->lo < 1.5 && kappa->hi > 0.8;
		sweep_result_free(res);
	}
	assert_true(held >= RUNS * 55 / 60);
}

/* Four targets share blocks, and each has its own interval; a dozen are screened before. */
static void test_a_response_of_several_targets(void **state)
{
	static const double kappa[] = { 1, 0.5, 0, 0 };
	struct sim_cfg sim = open_loop(3000);
	struct drive_cfg cfg = minute();
	size_t held[4] = { 0 }, wrong = 0, found = 0;

	(void)state;
	cfg.response = true;
	sim.n_targets = 12;
	for (size_t i = 0; i < sim.n_targets; i++)
		sim.target[i] = (struct sim_target){ .kappa = i < 4 ? kappa[i] : 0, .hits = 2 };
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sweep_result *res;

		sim.n_targets = 4;
		res = sim_sweep(&sim, &cfg, seed);
		for (size_t i = 0; i < 4; i++) {
			const struct sweep_estimate *k = &res->target[i].kappa;

			/* The queue adds to it: an item that waits feels those before it. */
			held[i] += k->lo <= kappa[i] * 1.35 && k->hi >= kappa[i];
		}
		sweep_result_free(res);
		sim.n_targets = 12;
		res = sim_sweep(&sim, &cfg, seed);
		found += res->target[0].verdict == VERDICT_CRITICAL;
		for (size_t i = 0; i < 12; i++)
			wrong += res->target[i].verdict ==
				 (i < 2 ? VERDICT_HIDDEN : VERDICT_CRITICAL);
		sweep_result_free(res);
	}
	for (size_t i = 0; i < 4; i++)
		print_message("kappa %.1f held %zu of %d\n", kappa[i], held[i], RUNS);
	print_message("of a dozen: found %zu, wrong %zu\n", found, wrong);
	for (size_t i = 0; i < 4; i++)
		assert_true(held[i] >= RUNS * 54 / 60);
	assert_true(found >= RUNS * 50 / 60);
	assert_true(wrong <= RUNS / 60);
}

static void test_saturated_open_loop_is_as_good_as_closed(void **state)
{
	struct sim_cfg sim = open_loop(12000);
	struct drive_cfg cfg = minute();
	struct tally tally = sweeps("saturated", &sim, &cfg, 1, RUNS);

	(void)state;
	right(&tally, VERDICT_CRITICAL);
}

/* Unasked, a hidden function says upon what it depends. */
static void test_hidden_under_an_unknown_load_warns(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct drive_cfg cfg = minute();
	struct sweep_result *res = sim_sweep(&sim, &cfg, 1);

	(void)state;
	assert_int_equal(res->gates.load, LOAD_UNKNOWN);
	assert_int_equal(res->n_warnings, 1);
	assert_non_null(strstr(res->warning[0], "if the load is closed"));
	sweep_result_free(res);
}

/* --- nothing to see --- */

static void test_not_called(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;

	(void)state;
	sim.target[0].hits = 0;
	res = sim_sweep(&sim, &cfg, 1);
	assert_int_equal(res->target[0].verdict, VERDICT_NOT_CALLED);
	assert_true(isnan(res->target[0].kappa.est));
	assert_int_equal(sweep_exit_status(res), 0);
	assert_true(res->time_s < 20); /* a quarter of the time, and then it is believed */
	sweep_result_free(res);
}

static void test_dead_source(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;

	(void)state;
	sim.dead_after_s = 0.001;
	res = sim_sweep(&sim, &cfg, 1);
	assert_true(res->dead_source);
	assert_int_equal(res->target[0].verdict, VERDICT_INVALID);
	assert_true(isnan(res->target[0].kappa.est));
	assert_true(res->time_s < 20);
	sweep_result_free(res);
	sim.dead_after_s = 20; /* in the middle */
	res = sim_sweep(&sim, &cfg, 1);
	assert_true(res->dead_source);
	assert_int_equal(res->target[0].verdict, VERDICT_INVALID);
	assert_int_equal(sweep_exit_status(res), 6);
	sweep_result_free(res);
}

static void test_too_little_time_says_how_much(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = minute();
	struct sweep_result *res;

	(void)state;
	sim.t0_ns = 200e6; /* five items a second */
	sim.item_cv = 0.1;
	cfg.time_ns = 20000000000u;
	res = sim_sweep(&sim, &cfg, 1);
	assert_int_equal(res->target[0].verdict, VERDICT_INCONCLUSIVE);
	assert_true(res->time_needed_s > 20);
	assert_int_equal(sweep_exit_status(res), 6);
	cfg.time_ns = (uint64_t)(1.3e9 * res->time_needed_s);
	sweep_result_free(res);
	res = sim_sweep(&sim, &cfg, 1);
	assert_true(res->target[0].blocks >= 8);
	sweep_result_free(res);
}

/* --- many runs, many targets --- */

static void test_whole_runs(void **state)
{
	struct sim_cfg sim = drifting(1);
	struct drive_cfg cfg = drive_defaults();
	struct tally tally;
	struct sweep_result *res;
	size_t arms[ARM_COUNT] = { 0 };

	(void)state;
	cfg.runs = true;
	cfg.n_runs = 10;
	tally = sweeps("10 runs an arm", &sim, &cfg, 1, RUNS);
	assert_true(tally.held >= RUNS * 52 / 60);
	assert_true(tally.verdict[VERDICT_CRITICAL] >= RUNS * 55 / 60);
	res = sim_sweep(&sim, &cfg, 1);
	for (size_t i = 0; i < res->n_windows; i++)
		if (res->window[i].block >= 0)
			arms[res->window[i].arm]++;
	assert_int_equal(arms[ARM_OFF], 10);
	assert_int_equal(arms[ARM_SHAM], 20); /* the A/A runs among them */
	assert_int_equal(arms[ARM_DOSE], 30);
	sweep_result_free(res);
	cfg.n_runs = 4;
	res = sim_sweep(&sim, &cfg, 1);
	assert_true(isfinite(res->target[0].kappa.lo) && isfinite(res->target[0].kappa.hi));
	assert_true(res->target[0].verdict == VERDICT_CRITICAL ||
		    res->target[0].verdict == VERDICT_INCONCLUSIVE);
	sweep_result_free(res);
}

static void test_many_targets(void **state)
{
	struct sim_cfg sim = drifting(0);
	struct drive_cfg cfg = minute();
	size_t wrong = 0, found = 0, hidden = 0;

	(void)state;
	sim.n_targets = 16;
	for (size_t i = 0; i < 16; i++)
		sim.target[i] = (struct sim_target){ .kappa = i == 5, .hits = (double)(1 + i) };
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sweep_result *res = sim_sweep(&sim, &cfg, seed);

		assert_int_equal(res->n_targets, 16);
		assert_true(res->time_s <= 60);
		for (size_t i = 0; i < 16; i++) {
			enum sweep_verdict v = res->target[i].verdict;

			found += i == 5 && v == VERDICT_CRITICAL;
			hidden += i != 5 && v == VERDICT_HIDDEN;
			wrong += i == 5 ? v == VERDICT_HIDDEN :
					  v == VERDICT_CRITICAL || v == VERDICT_PARTIAL;
		}
		sweep_result_free(res);
	}
	printf("# 16 targets, 1 critical: found in %zu of %d; of %d others %zu HIDDEN; %zu wrong\n",
	       found, RUNS, 15 * RUNS, hidden, wrong);
	assert_true(found >= RUNS * 57 / 60);
	assert_true(hidden >= RUNS * 15 / 2);
	assert_true(wrong <= RUNS / 20);
}

/* An engine's steps of 10 ms, and little time: each target has an interval, and none a wrong one.
 */
static void every_target(size_t n, uint64_t time_s)
{
	struct drive_cfg cfg = minute();
	size_t without = 0, held = 0, wrong = 0, right = 0;

	cfg.time_ns = time_s * 1000000000u;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sim_cfg sim = drifting(0);
		struct sweep_result *res;

		sim.n_targets = n;
		sim.t0_ns = 10e6;
		for (size_t i = 0; i < n; i++)
			sim.target[i] = (struct sim_target){ .kappa = i == 1, .hits = 1 };
		res = sim_sweep(&sim, &cfg, seed);
		for (size_t i = 0; i < n; i++) {
			const struct sweep_target *t = &res->target[i];

			without += !t->screened &&
				   !(isfinite(t->kappa.lo) && isfinite(t->kappa.hi));
			held += t->screened || holds(&t->kappa, i == 1);
			right += t->verdict == (i == 1 ? VERDICT_CRITICAL : VERDICT_HIDDEN);
			wrong += i == 1 ? t->verdict == VERDICT_HIDDEN :
					  t->verdict == VERDICT_CRITICAL ||
						  t->verdict == VERDICT_PARTIAL;
		}
		sweep_result_free(res);
	}
	printf("# %zu targets in %zu s: %zu of %zu without an interval, held %zu, right %zu, wrong "
	       "%zu\n",
	       n, (size_t)time_s, without, n * RUNS, held, right, wrong);
	assert_true(without * 50 <= n * RUNS);
	assert_true(wrong * 100 <= n * RUNS);
}

static void test_no_target_starves(void **state)
{
	(void)state;
	every_target(3, 30);
	every_target(5, 60);
}

/*
 * A function that is called 40000 times an item: a delay of each call would be too much, and to
 * count the calls takes a third of the item by itself. That is no effect of a delay.
 */
static void test_each_nth_call_is_delayed(void **state)
{
	const uint64_t every[] = { 0, 2, 128 };
	int held[3] = { 0 }, runs = 30;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < (i < 2 ? 2 : runs); k++) {
			struct sim_cfg sim = drifting(1);
			struct drive_cfg cfg = minute();
			struct sweep_result *res;
			const struct sweep_target *t;

			sim.t0_ns = 2.5e6;
			sim.item_cv = 0.1;
			sim.target[0].hits = 40000;
			sim.target[0].every = (double)every[i];
			sim.target[0].count_ns = i < 2 ? 0 : 20;
			cfg.every = &every[i];
			cfg.floor_ns = 40;
			cfg.time_ns = 20000000000u;
			res = sim_sweep(&sim, &cfg, (uint64_t)k + 1);
			t = &res->target[0];
			held[i] += t->kappa.lo <= 1 && 1 <= t->kappa.hi;
			assert_true(i == 2 || strstr(t->reason, "use every=64"));
			assert_true(i < 2 || fabs(t->hits_per_item - 40000) < 4000);
			sweep_result_free(res);
		}
	printf("# each 128th call: held %d of %d\n", held[2], runs);
	assert_int_equal(held[0] + held[1], 0);
	assert_true(held[2] * 10 >= runs * 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serial_is_critical),
		cmocka_unit_test(test_hidden_is_hidden),
		cmocka_unit_test(test_partial_is_partial),
		cmocka_unit_test(test_convoy_is_critical_and_above_one),
		cmocka_unit_test(test_false_hidden_is_rare),
		cmocka_unit_test(test_slack_is_found_and_the_function_hidden),
		cmocka_unit_test(test_unprobed_doses_tell_a_part_from_a_slack),
		cmocka_unit_test(test_ranks_and_roles),
		cmocka_unit_test(test_one_dose_is_no_part),
		cmocka_unit_test(test_pipeline_of_three_stages),
		cmocka_unit_test(test_adaptive_batcher),
		cmocka_unit_test(test_a_program_that_drifts),
		cmocka_unit_test(test_quantised_progress),
		cmocka_unit_test(test_heavy_tails),
		cmocka_unit_test(test_guard_is_raised_for_a_deep_pipeline),
		cmocka_unit_test(test_cost_of_the_hook_is_measured),
		cmocka_unit_test(test_absorbed_delay_is_flagged),
		cmocka_unit_test(test_open_loop_is_invalid_by_the_positive_control),
		cmocka_unit_test(test_open_loop_is_right_by_its_response),
		cmocka_unit_test(test_a_response_of_many_items),
		cmocka_unit_test(test_a_response_of_several_targets),
		cmocka_unit_test(test_a_few_blocks_have_an_honest_interval),
		cmocka_unit_test(test_saturated_open_loop_is_as_good_as_closed),
		cmocka_unit_test(test_hidden_under_an_unknown_load_warns),
		cmocka_unit_test(test_no_target_starves),
		cmocka_unit_test(test_not_called),
		cmocka_unit_test(test_dead_source),
		cmocka_unit_test(test_too_little_time_says_how_much),
		cmocka_unit_test(test_each_nth_call_is_delayed),
		cmocka_unit_test(test_whole_runs),
		cmocka_unit_test(test_many_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
