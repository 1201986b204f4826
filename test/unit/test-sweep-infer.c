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
#include "sweep/infer.h"
#include "sweep/order.h"
#include "sweep/slack.h"
#include "sweep/stat.h"

/*
 * Does an interval that says 95 % hold the truth 95 times in 100? Programs with known answers are
 * simulated (sweep-sim.h) in randomised blocks, many times over, each with a seed of its own.
 */
#define RUNS	 400
#define MAX_ARMS 5

struct design {
	size_t n_arms, n_blocks;
	double dose[MAX_ARMS]; /* injected a item; [0] is SHAM */
	double window_s, guard_s;
};

struct run {
	struct infer_cell cell[64 * MAX_ARMS];
	struct infer_data data;
};

/* An arm's windows of a block, pooled. */
static void run_cell(struct sim *sim, const struct design *d, int arm, double *sums)
{
	uint64_t delay[SIM_TARGETS] = { 0 };
	struct drive_step step = { .hooked = true, .delay_ns = delay };
	struct drive_window window;
	struct sim_lanes lanes;

	delay[0] = (uint64_t)(d->dose[arm] / sim->cfg.target[0].hits + 0.5);
	step.window_ns = (uint64_t)(d->window_s * 1e9);
	step.guard_ns = (uint64_t)(d->guard_s * 1e9);
	sim_window(sim, &step, NULL, &window, &lanes);
	sums[0] += (double)window.time_ns;
	sums[1] += (double)lanes.count[0].injected_ns;
	sums[2] += (double)lanes.hits[0];
	sums[3] += window.items;
}

static void run_blocks(struct run *run, const struct sim_cfg *cfg, const struct design *d,
		       uint64_t seed)
{
	struct order order;
	struct sim sim;
	struct rng rng;
	int seq[2 * ORDER_ARMS];

	rng_seed(&rng, seed);
	sim_open(&sim, cfg, seed);
	order_init(&order, d->n_arms, true);
	for (size_t b = 0; b < d->n_blocks; b++) {
		double sums[MAX_ARMS][4] = { { 0 } };

		order_block(&order, &rng, seq);
		for (size_t i = 0; i < order_length(&order); i++)
			run_cell(&sim, d, seq[i], sums[seq[i]]);
		for (size_t a = 0; a < d->n_arms; a++)
			run->cell[b * d->n_arms + a] =
				(struct infer_cell){ .t = sums[a][0] / sums[a][3],
						     .x = sums[a][1] / sums[a][3],
						     .h = sums[a][2] / sums[a][3] };
	}
	run->data = (struct infer_data){ .n_blocks = d->n_blocks,
					 .n_arms = d->n_arms,
					 .cell = run->cell };
}

struct coverage {
	size_t runs;
	double held, origin, robust, slack, beyond; /* runs whose interval held the truth */
	double mean, width, rejected, found, slack_off;
};

static bool holds(const struct sweep_estimate *e, double truth)
{
	return e->lo <= truth && truth <= e->hi;
}

static void cover_one(const struct sim_cfg *cfg, const struct design *d, double kappa,
		      uint64_t seed, struct coverage *c)
{
	double s = cfg->target[0].slack_ns;
	struct infer_kappa k;
	struct slack_fit fit;
	struct run run;
	struct rng rng;

	rng_seed(&rng, seed);
	run_blocks(&run, cfg, d, seed);
	infer_kappa(&run.data, &rng, &k);
	slack_fit(&run.data, &k, 0.1, &rng, &fit);
	c->runs++;
	c->held += holds(&k.kappa, kappa);
	c->origin += holds(&fit.origin.kappa, kappa);
	c->robust += holds(&k.robust, kappa);
	c->mean += k.kappa.est;
	c->width += (k.kappa.hi - k.kappa.lo) / 2;
	c->rejected += k.p_random <= 0.05;
	if (fit.kind != SLACK_FOUND)
		return;
	c->found++;
	c->slack += holds(&fit.slack_ns, s);
	c->slack_off += fabs(fit.slack_ns.est - s) > 0.1 * s;
	c->beyond += holds(&fit.beyond, cfg->target[0].kappa);
}

static struct coverage cover(const char *name, const struct sim_cfg *cfg, const struct design *d,
			     double kappa, size_t runs)
{
	struct coverage c = { 0 };

	for (size_t i = 0; i < runs; i++)
		cover_one(cfg, d, kappa, 1000 + i, &c);
	c.mean /= (double)runs;
	c.width /= (double)runs;
	printf("# %-20s %zu blocks, %zu arms: kappa %6.3f +- %.3f, held %.1f %%, robust %.1f %%, "
	       "p <= 5 %%: %.1f %%\n",
	       name, d->n_blocks, d->n_arms, c.mean, c.width, 100 * c.held / (double)runs,
	       100 * c.robust / (double)runs, 100 * c.rejected / (double)runs);
	return c;
}

static const struct design few = { 2, 8, { 0, 10e3 }, 0.2, 0.02 };
static const struct design several = { 5, 12, { 0, 10e3, 20e3, 30e3, 40e3 }, 0.1, 0.02 };
static const struct design many = { 3, 24, { 0, 10e3, 20e3 }, 0.1, 0.02 };
static const struct design *const designs[] = { &several, &many, &few };
#define DESIGNS 3

#define assert_share(n, of, lo, hi)                                                           \
	do {                                                                                  \
		double share_ = (double)(n) / (double)(of);                                   \
                                                                                              \
		if (!(share_ >= (lo) && share_ <= (hi)))                                      \
			fail_msg("%s: %.3f is not in %.3f to %.3f", #n, share_, (double)(lo), \
				 (double)(hi));                                               \
	} while (0)

/* Three designs, so that both kinds of interval are tried; or the first few of them. */
static void covers(const char *name, const struct sim_cfg *cfg, double kappa, double hi, int n)
{
	for (int i = 0; i < n; i++) {
		struct coverage c = cover(name, cfg, designs[i], kappa, RUNS);

		assert_share(c.held, c.runs, 0.92, hi);
		assert_share(c.robust, c.runs, 0.90, 0.99);
		assert_true(fabs(c.mean - kappa) < 0.05);
		if (kappa == 0)
			assert_share(c.rejected, c.runs, 0.02, 0.08);
	}
}

/* Drifts, and its noise is twice that of the machine the other tests start from. */
static struct sim_cfg noisy(double kappa)
{
	struct sim_cfg cfg = drifting(kappa);

	cfg.ar_sd = 0.02;
	return cfg;
}

static void test_serial(void **state)
{
	struct sim_cfg cfg = noisy(1);

	(void)state;
	covers("serial", &cfg, 1, 0.98, 2);
}

static void test_hidden_and_size_of_the_randomisation_test(void **state)
{
	struct sim_cfg cfg = noisy(0);

	(void)state;
	covers("hidden", &cfg, 0, 0.98, DESIGNS);
}

static void test_partial(void **state)
{
	struct sim_cfg cfg = noisy(0.4);

	(void)state;
	covers("partial", &cfg, 0.4, 0.98, 1);
}

static void test_convoy(void **state)
{
	struct sim_cfg cfg = noisy(1.8);

	(void)state;
	covers("convoy", &cfg, 1.8, 0.98, 1);
}

static void test_heavy_tails_do_not_make_it_bold(void **state)
{
	struct sim_cfg cfg = noisy(0);

	(void)state;
	cfg.ar_sd = 0.005;
	cfg.stall_per_s = 1;
	cfg.stall_s = 0.003;
	covers("stalls", &cfg, 0, 1, DESIGNS);
}

/* A counter published every 30 ms, and windows that are no multiple of it. */
static void test_quantised_progress(void **state)
{
	struct sim_cfg cfg = noisy(1);
	struct design d = several;
	struct coverage c;

	(void)state;
	cfg.period_s = 0.03;
	c = cover("published", &cfg, &d, 1, RUNS);
	assert_share(c.held, c.runs, 0.92, 0.985);
}

static void test_slack(void **state)
{
	struct sim_cfg cfg = noisy(1);
	struct coverage c;

	(void)state;
	cfg.ar_sd = 0.01;
	cfg.target[0].slack_ns = 15e3;
	c = cover("slack 15 us", &cfg, &several, 0, RUNS);
	printf("# slack found %.1f %%, held %.1f %%, off by a tenth %.1f %%; beyond held %.1f %%, "
	       "origin %.1f %%\n",
	       100 * c.found / RUNS, 100 * c.slack / c.found, 100 * c.slack_off / c.found,
	       100 * c.beyond / c.found, 100 * c.origin / RUNS);
	assert_share(c.found, c.runs, 0.99, 1);
	assert_share(c.slack, c.found, 0.92, 0.985);
	assert_share(c.slack_off, c.found, 0, 0.02);
	assert_share(c.beyond, c.found, 0.90, 0.985);
	assert_share(c.origin, c.runs, 0.92, 0.985);
}

static void test_no_slack_is_seen_where_there_is_none(void **state)
{
	struct sim_cfg cfg = noisy(1);
	struct coverage c;

	(void)state;
	c = cover("no slack", &cfg, &several, 1, RUNS);
	assert_share(c.found, c.runs, 0, 0.03);
	assert_share(c.origin, c.runs, 0.92, 0.985);
}

/* One dose above it says that there is a slack, not where: its slope may be anything. */
static void test_slack_with_one_dose_above_is_a_bracket(void **state)
{
	struct sim_cfg cfg = noisy(1);
	struct design d = { 4, 24, { 0, 5e3, 10e3, 30e3 }, 0.1, 0.02 };
	struct infer_kappa k;
	struct slack_fit fit;
	struct run run;
	size_t brackets = 0;

	(void)state;
	cfg.ar_sd = 0.005;
	cfg.target[0].slack_ns = 15e3;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		run_blocks(&run, &cfg, &d, seed);
		infer_kappa(&run.data, NULL, &k);
		slack_fit(&run.data, &k, 0.1, NULL, &fit);
		brackets += fit.kind == SLACK_BRACKET;
		if (fit.kind != SLACK_BRACKET)
			continue;
		assert_true(isnan(fit.slack_ns.est) && isnan(fit.beyond.est));
		assert_true(fit.slack_ns.lo <= 15e3 && fit.slack_ns.hi >= 15e3);
	}
	assert_true(brackets >= 36);
}

/* Half of it felt: by half, or beyond a slack? Two points lie on any number of hinges. */
static void test_one_dose_says_nothing_of_a_slack(void **state)
{
	struct sim_cfg cfg = noisy(1);
	struct infer_kappa k;
	struct slack_fit fit;
	struct run run;

	(void)state;
	cfg.target[0].slack_ns = 5e3;
	run_blocks(&run, &cfg, &few, 1);
	infer_kappa(&run.data, NULL, &k);
	slack_fit(&run.data, &k, 0.1, NULL, &fit);
	assert_true(k.kappa.lo > 0);
	assert_int_equal(fit.kind, SLACK_UNKNOWN);
	assert_true(isnan(fit.slack_ns.est) && isnan(fit.slack_ns.hi));
	assert_non_null(fit.why);
}

/* --- what the blocks are for --- */

/* First everything without delay, then everything with it, and Welch's interval. */
static struct sweep_estimate before_and_after(const struct sim_cfg *cfg, uint64_t seed)
{
	const struct design d = { 2, 1, { 0, 10e3 }, 0.2, 0.02 };
	double t[2][16], x = 0, var[2], se, df;
	struct sweep_estimate out;
	struct sim sim;

	sim_open(&sim, cfg, seed);
	for (int arm = 0; arm < 2; arm++)
		for (int i = 0; i < 16; i++) {
			double sums[4] = { 0 };

			run_cell(&sim, &d, arm, sums);
			t[arm][i] = sums[0] / sums[3];
			x += arm * sums[1] / sums[3] / 16;
		}
	for (int arm = 0; arm < 2; arm++)
		var[arm] = stat_var(t[arm], 16) / 16;
	se = sqrt(var[0] + var[1]);
	df = se * se * se * se / ((var[0] * var[0] + var[1] * var[1]) / 15);
	out.est = (stat_mean(t[1], 16) - stat_mean(t[0], 16)) / x;
	out.lo = out.est - stat_t_quantile(0.975, df) * se / x;
	out.hi = out.est + stat_t_quantile(0.975, df) * se / x;
	return out;
}

/* The same program, windows and time, once before and after, once in blocks. */
static void test_drift_fools_before_and_after_and_not_blocks(void **state)
{
	struct sim_cfg cfg = noisy(1);
	double held = 0, mean = 0;
	struct coverage c;

	(void)state;
	cfg.drift = 0.03;
	cfg.horizon_s = 7; /* what either takes */
	cfg.ar_tau_s = 2;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct sweep_estimate e = before_and_after(&cfg, seed);

		held += holds(&e, 1);
		mean += e.est / RUNS;
	}
	printf("# before and after: kappa %.3f, held %.1f %%\n", mean, 100 * held / RUNS);
	c = cover("the same in blocks", &cfg, &few, 1, RUNS);
	assert_share(held, RUNS, 0, 0.6);
	assert_share(c.held, c.runs, 0.92, 0.98);
	assert_true(fabs(mean - 1) > 3 * fabs(c.mean - 1));
}

/* --- what cannot be known is not made up --- */

static struct infer_data table(struct infer_cell *cell, size_t blocks, size_t arms)
{
	for (size_t b = 0; b < blocks; b++)
		for (size_t a = 0; a < arms; a++)
			cell[b * arms + a] = (struct infer_cell){ .t = 100 + 10 * (double)a +
								       (double)(b * b % 7),
								  .x = 10 * (double)a,
								  .h = 2 };
	return (struct infer_data){ .n_blocks = blocks, .n_arms = arms, .cell = cell };
}

static void test_nothing_injected_is_unknown(void **state)
{
	struct infer_cell cell[16];
	struct infer_data data = table(cell, 8, 2);
	struct infer_kappa k;
	struct slack_fit fit;

	(void)state;
	for (int i = 0; i < 16; i++)
		cell[i].x = 0;
	infer_kappa(&data, NULL, &k);
	assert_true(isnan(k.kappa.est) && isnan(k.kappa.lo) && isnan(k.se) && isnan(k.mde));
	assert_string_equal(k.why, "nothing was injected");
	slack_fit(&data, &k, 0.1, NULL, &fit);
	assert_int_equal(fit.kind, SLACK_UNKNOWN);
	assert_true(isnan(fit.slack_ns.est));
}

/* The injected time itself is noise around nothing: Fieller's set is unbounded. */
static void test_injected_time_that_may_be_none_is_unknown(void **state)
{
	struct infer_cell cell[16];
	struct infer_data data = table(cell, 8, 2);
	struct infer_kappa k;

	(void)state;
	for (int i = 0; i < 16; i++)
		cell[i].x = i % 2 ? (i % 4 == 1 ? 10 : -9) : 0;
	infer_kappa(&data, NULL, &k);
	assert_true(isnan(k.kappa.est));
	assert_non_null(k.why);
}

static void test_one_block_has_no_spread(void **state)
{
	struct infer_cell cell[2];
	struct infer_data data = table(cell, 1, 2);
	struct infer_kappa k;

	(void)state;
	infer_kappa(&data, NULL, &k);
	assert_true(isnan(k.kappa.est));
	data.n_blocks = 0;
	infer_kappa(&data, NULL, &k);
	assert_true(isnan(k.kappa.est));
	assert_string_equal(k.why, "no block is complete");
}

static void test_a_block_without_items_is_lost_and_counted(void **state)
{
	struct infer_cell cell[20];
	struct infer_data data = table(cell, 10, 2);
	struct infer_kappa k;

	(void)state;
	cell[7].t = cell[7].x = NAN;
	infer_kappa(&data, NULL, &k);
	assert_int_equal(k.n, 9);
	assert_int_equal(k.lost, 1);
	assert_true(fabs(k.kappa.est - 1) < 1e-12);
}

/* Equal contrasts have no spread; rounding has one all the same. */
static void test_no_spread_is_not_certainty_where_the_source_rounds(void **state)
{
	struct infer_cell cell[16];
	struct infer_data data = table(cell, 8, 2);
	struct infer_kappa k;

	(void)state;
	infer_kappa(&data, NULL, &k);
	assert_true(k.kappa.hi - k.kappa.lo < 1e-9);
	assert_true(k.p_t < 1e-9);
	data.resolution_ns = 5;
	infer_kappa(&data, NULL, &k);
	assert_true(k.kappa.hi - k.kappa.lo > 0.05);
}

static void test_outliers_are_kept_and_named(void **state)
{
	struct infer_cell cell[48];
	struct infer_data data = table(cell, 24, 2);
	struct infer_kappa k;

	(void)state;
	for (size_t b = 0; b < 24; b++)
		cell[2 * b + 1].t += 0.3 * (double)(b * 7 % 5);
	for (size_t b = 0; b < 5; b++)
		cell[2 * b + 1].t += 1000;
	infer_kappa(&data, NULL, &k);
	assert_int_equal(k.n, 24);
	assert_true(k.kappa.est > 10);	 /* the mean feels them */
	assert_true(k.robust.est < 1.2); /* the median of pairs does not */
}

/* Of normal contrasts the bootstrap must find what t knows; percentiles alone are too narrow. */
static void test_bootstrap_is_studentised(void **state)
{
	double ratio = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct infer_cell cell[2 * INFER_BOOT_BLOCKS];
		struct infer_data data = table(cell, INFER_BOOT_BLOCKS, 2);
		struct infer_kappa t, boot;
		struct rng rng;

		rng_seed(&rng, seed);
		for (size_t b = 0; b < INFER_BOOT_BLOCKS; b++)
			cell[2 * b + 1].t += rng_normal(&rng);
		infer_kappa(&data, NULL, &t);
		infer_kappa(&data, &rng, &boot);
		assert_string_equal(boot.method, "bootstrap-t");
		ratio += (boot.kappa.hi - boot.kappa.lo) / (t.kappa.hi - t.kappa.lo) / 200;
	}
	assert_true(ratio > 0.97 && ratio < 1.06);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serial),
		cmocka_unit_test(test_hidden_and_size_of_the_randomisation_test),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_convoy),
		cmocka_unit_test(test_heavy_tails_do_not_make_it_bold),
		cmocka_unit_test(test_quantised_progress),
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_no_slack_is_seen_where_there_is_none),
		cmocka_unit_test(test_slack_with_one_dose_above_is_a_bracket),
		cmocka_unit_test(test_one_dose_says_nothing_of_a_slack),
		cmocka_unit_test(test_drift_fools_before_and_after_and_not_blocks),
		cmocka_unit_test(test_nothing_injected_is_unknown),
		cmocka_unit_test(test_injected_time_that_may_be_none_is_unknown),
		cmocka_unit_test(test_one_block_has_no_spread),
		cmocka_unit_test(test_a_block_without_items_is_lost_and_counted),
		cmocka_unit_test(test_no_spread_is_not_certainty_where_the_source_rounds),
		cmocka_unit_test(test_outliers_are_kept_and_named),
		cmocka_unit_test(test_bootstrap_is_studentised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
