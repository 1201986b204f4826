/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sweep/adjust.h"
#include "sweep/rng.h"
#include "sweep-sim.h"

/*
 * A program whose items are of different sizes, known from a covariate: how often the interval of
 * kappa, adjusted for it, holds the truth, and how wide it is. The second experiment is the
 * control, which slows the program for certain.
 */
#define RUNS  600
#define T0    1e6 /* ns an item */
#define ITEMS 100

struct model {
	int blocks, doses, covariates;
	double kappa;
	double top;    /* the largest dose, by T0 */
	double noise;  /* of a window, by T0 */
	double drift;  /* of a block, by T0 */
	double spread; /* of a window's covariate, by its mean of 10 */
	double beta;   /* of T by T0, for a covariate as large as its mean */
	double moves;  /* of the covariate by its mean, for a delay of T0 */
	bool follows;  /* the covariate is T itself: it counts the time */
	bool speed;    /* the last one is the items per second */
	bool rate;     /* per second */
	bool uncontrolled;
	int gates;
};

static struct model usual(void)
{
	return (struct model){ .blocks = 8,
			       .doses = 2,
			       .covariates = 1,
			       .kappa = 0.7,
			       .top = 0.3,
			       .noise = 0.01,
			       .drift = 0.05,
			       .spread = 0.1,
			       .beta = 1 };
}

static double block_c;

static void add_window(struct record *rec, const struct model *m, struct rng *rng,
		       struct record_row *row, double level, double x)
{
	double t = level + m->kappa * x + m->noise * rng_normal(rng);
	struct lane_count lane = { .hits = ITEMS, .injected_ns = (uint64_t)(x * T0 * ITEMS) };
	double c[INFER_COVARIATES];

	for (int k = 0; k < m->covariates; k++) {
		c[k] = 1 + block_c + m->spread * rng_normal(rng);
		c[k] += k == 0 ? m->moves * x : 0;
		t += k == 0 ? m->beta * (c[k] - 1) : 0;
	}
	if (m->follows)
		c[0] = t;
	if (m->speed)
		c[m->covariates - 1] = 1 / t;
	row->length = 1;
	row->lane = &lane;
	row->n_lanes = 1;
	row->win.time_ns = (uint64_t)(t * T0 * ITEMS);
	row->win.items = ITEMS;
	row->win.hits = ITEMS;
	for (int k = 0; k < m->covariates; k++)
		row->win.amount[k] = 10 * c[k] *
				     (m->rate ? (double)row->win.time_ns / 1e9 : (double)ITEMS);
	record_add(rec, row);
}

static void add_block(struct record *rec, const struct model *m, struct rng *rng, int experiment,
		      int block, int arms)
{
	double level = 1 + m->drift * rng_normal(rng);

	block_c = 0.2 * rng_normal(rng);
	for (int arm = 0; arm < arms; arm++) {
		double x = m->top * arm / (arms - 1);
		struct record_row row = { .column = arm ? COLUMN_DOSE + arm - 1 : COLUMN_SHAM };

		row.win = (struct sweep_window){ .arm = arm ? ARM_DOSE : ARM_SHAM,
						 .target = -1,
						 .experiment = experiment,
						 .block = block,
						 .dose = arm,
						 .delay_ns = (uint64_t)(x * T0) };
		add_window(rec, m, rng, &row, level, x);
	}
}

static void add_gate(struct record *rec, const struct model *m, struct rng *rng, int block)
{
	double level = 1 + m->drift * rng_normal(rng);

	for (int column = COLUMN_OFF; column <= COLUMN_SHAM2; column++) {
		struct record_row row = { .column = column };

		row.win = (struct sweep_window){ .arm = column == COLUMN_OFF ? ARM_OFF : ARM_SHAM,
						 .target = -1,
						 .block = block };
		add_window(rec, m, rng, &row, level, 0);
	}
}

static void record_make(const struct model *m, uint64_t seed, struct record *rec)
{
	struct model control = *m;
	struct rng rng;

	rng_seed(&rng, seed * 7919 + 5);
	*rec = (struct record){ .n_lanes = 1, .n_covariates = (size_t)m->covariates };
	rec->lane = calloc(1, sizeof(*rec->lane));
	rec->rate[0] = m->rate;
	for (int b = 0; b < m->blocks; b++)
		add_block(rec, m, &rng, 0, b, 1 + m->doses);
	for (int b = 0; b < m->gates; b++)
		add_gate(rec, m, &rng, m->blocks + b);
	control.kappa = 1;
	for (int b = 0; b < 6 && !m->uncontrolled; b++)
		add_block(rec, &control, &rng, 1, b, 2);
}

struct one {
	struct infer_kappa kappa;
	double raw_width, aa, aa_raw;
	struct sweep_adjust adjust[INFER_COVARIATES];
	size_t used;
};

static double half_of(const struct record *rec)
{
	double v[64];
	size_t n = record_contrast(rec, 0, COLUMN_SHAM, COLUMN_SHAM2, RECORD_SHARE, v);
	struct sweep_estimate e = infer_mean(v, n, NULL);

	return (e.hi - e.lo) / 2;
}

static void simulate(const struct model *m, uint64_t seed, struct one *out)
{
	struct record_of of[] = { { 0, -1, 0, (size_t)m->doses }, { 1, -1, 0, 1 } };
	struct record_view view = { LANE_ALL, -1, .raw = true };
	struct infer_kappa raw;
	struct infer_data data;
	struct record rec;
	struct rng rng;

	rng_seed(&rng, seed);
	record_make(m, seed, &rec);
	out->aa_raw = m->gates ? half_of(&rec) : NAN;
	record_data(&rec, of, &view, &data, NULL);
	infer_kappa(&data, NULL, &raw);
	record_data_free(&data);
	adjust_fit(&rec, of, m->uncontrolled ? 1 : 2, out->adjust);
	view.raw = false;
	record_data(&rec, of, &view, &data, NULL);
	infer_kappa(&data, m->blocks < INFER_BOOT_BLOCKS ? NULL : &rng, &out->kappa);
	out->raw_width = raw.kappa.hi - raw.kappa.lo;
	out->used = rec.adjust.n;
	out->aa = m->gates ? half_of(&rec) : NAN;
	record_data_free(&data);
	record_free(&rec);
}

struct tally {
	int held, used, hidden;
	double narrower, mean; /* widths by the unadjusted ones; of kappa */
};

static struct tally cover(const char *name, const struct model *m, double truth)
{
	struct tally t = { 0 };

	for (int i = 0; i < RUNS; i++) {
		struct one one;

		simulate(m, (uint64_t)i + 1, &one);
		t.held += one.kappa.kappa.lo <= truth && truth <= one.kappa.kappa.hi;
		t.used += one.used > 0;
		t.hidden += one.kappa.kappa.hi < 0.1;
		t.narrower += (one.kappa.kappa.hi - one.kappa.kappa.lo) / one.raw_width / RUNS;
		t.mean += one.kappa.kappa.est / RUNS;
	}
	print_message(
		"%-32s held %5.1f %%, used %5.1f %%, width %.2f of the unadjusted, kappa %.3f "
		"of %.3f, %d hidden\n",
		name, 100.0 * t.held / RUNS, 100.0 * t.used / RUNS, t.narrower, t.mean, truth,
		t.hidden);
	return t;
}

/* 93 to 98 %: of 600 runs 95 % have a deviation of 0.9 %. */
static void right(const struct tally *t)
{
	assert_in_range(t->held, RUNS * 93 / 100, RUNS * 98 / 100);
}

static void test_a_covariate_that_explains_narrows(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	t = cover("explains, 8 blocks", &m, 0.7);
	right(&t);
	assert_true(t.narrower < 0.4);
	m.blocks = 24;
	t = cover("explains, 24 blocks", &m, 0.7);
	right(&t);
	assert_true(t.narrower < 0.2);
	m.blocks = 5;
	t = cover("explains, 5 blocks", &m, 0.7);
	right(&t);
	m.blocks = 8;
	m.doses = 1;
	t = cover("explains, a dose", &m, 0.7);
	right(&t);
	m.doses = 4;
	m.noise = 0.05;
	t = cover("explains the larger part", &m, 0.7);
	right(&t);
	assert_true(t.narrower < 0.6);
	m = usual();
	m.rate = true;
	m.kappa = 0;
	m.drift = 0;
	t = cover("per second, hidden", &m, 0);
	right(&t);
	assert_true(t.narrower < 0.4);
}

static void test_one_that_is_of_no_use_does_no_harm(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	m.beta = 0;
	m.noise = 0.05;
	t = cover("useless, 8 blocks", &m, 0.7);
	right(&t);
	assert_true(t.narrower < 1.1);
	m.covariates = 4;
	t = cover("four useless, 8 blocks", &m, 0.7);
	right(&t);
	assert_true(t.narrower < 1.25);
	m.blocks = 24;
	t = cover("four useless, 24 blocks", &m, 0.7);
	right(&t);
	assert_true(t.narrower < 1.1);
}

/* The delay makes the items larger, and by that slower: it is a part of kappa. */
static void test_one_that_the_delay_moves_is_not_used(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	m.moves = 1.5;
	m.kappa = 0.2;
	t = cover("moved by the delay", &m, 0.2 + m.beta * m.moves);
	right(&t);
	assert_true(t.used < RUNS / 50);
	m.moves = -0.6;
	m.kappa = 0.6;
	m.noise = 0.02;
	m.spread = 0.03;
	t = cover("moved the other way", &m, 0.6 + m.beta * m.moves);
	right(&t);
	assert_true(t.used < RUNS / 50);
}

/* It counts the time. Where the effect of the delay is not seen, neither is that of it. */
static void test_one_that_is_t_itself_hides_nothing(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	m.beta = 0;
	m.follows = true;
	for (int i = 0; i < 4; i++) {
		m.uncontrolled = i % 2;
		m.kappa = i < 2 ? 0.3 : 0.7;
		m.noise = 0.15;
		m.top = 0.2;
		t = cover(m.uncontrolled ? "time itself, no control" : "time itself", &m, m.kappa);
		right(&t);
		assert_true(t.used <= RUNS / 100);
		assert_true(t.hidden < RUNS / 40);
	}
}

/* What the tokens make noisy is seen beside them: the items per second follow the delay. */
static void test_the_speed_beside_a_covariate_is_not_used(void **state)
{
	struct model m = usual();
	int used = 0, held = 0;

	(void)state;
	m.covariates = 2;
	m.speed = true;
	for (int i = 0; i < RUNS; i++) {
		struct one one;

		simulate(&m, (uint64_t)i + 1, &one);
		used += one.adjust[1].used;
		held += one.kappa.kappa.lo <= m.kappa && m.kappa <= one.kappa.kappa.hi;
	}
	print_message("tokens, and items per second: the latter used %d of %d, held %d\n", used,
		      RUNS, held);
	assert_true(used <= RUNS / 20 && held >= RUNS * 92 / 100);
}

static struct one one_of(const struct model *m)
{
	struct one one;

	simulate(m, 3, &one);
	return one;
}

static void test_what_is_not_used_has_a_reason(void **state)
{
	struct model m = usual();
	struct one one;

	(void)state;
	m.moves = 1.5;
	one = one_of(&m);
	assert_true(one.adjust[0].moved && one.adjust[0].moved_p < 0.01);
	assert_true(fabs(one.adjust[0].moved_share - 0.45) < 0.15);
	assert_non_null(strstr(one.adjust[0].reason, "a delay changes it"));
	m = usual();
	m.uncontrolled = true;
	m.kappa = 0;
	one = one_of(&m);
	assert_int_equal(one.used, 0);
	assert_non_null(strstr(one.adjust[0].reason, "no delay was seen to slow"));
	m = usual();
	m.blocks = 2;
	m.doses = 1;
	m.uncontrolled = true;
	one = one_of(&m);
	assert_int_equal(one.used, 0);
	assert_non_null(strstr(one.adjust[0].reason, "too few blocks"));
}

/* Of four, the third is the first one again, and the fourth stands still. */
static void test_the_same_twice_is_used_once(void **state)
{
	struct model m = usual();
	struct record_of of[] = { { 0, -1, 0, 2 }, { 1, -1, 0, 1 } };
	struct sweep_adjust adjust[INFER_COVARIATES];
	struct record rec;

	(void)state;
	m.covariates = 4;
	record_make(&m, 1, &rec);
	for (size_t i = 0; i < rec.n; i++) {
		rec.row[i].win.amount[2] = 3 * rec.row[i].win.amount[0] + 5 * ITEMS;
		rec.row[i].win.amount[3] = 7 * ITEMS;
	}
	adjust_fit(&rec, of, 2, adjust);
	assert_int_equal(rec.adjust.n, 2);
	assert_true(adjust[0].used && adjust[1].used);
	assert_non_null(strstr(adjust[2].reason, "say the same"));
	assert_non_null(strstr(adjust[3].reason, "did not change"));
	assert_true(adjust[0].slope.lo < 1e5 && 1e5 < adjust[0].slope.hi); /* T0 for 10 of it */
	assert_true(rec.adjust.explained > 0.9);
	record_free(&rec);
}

static void test_equal_arms_and_the_course_are_adjusted_too(void **state)
{
	struct model m = usual();
	struct record_of of[] = { { 0, -1, 0, 2 }, { 1, -1, 0, 1 } };
	struct sweep_adjust adjust[INFER_COVARIATES];
	struct carry before, after;
	double narrower = 0;
	struct record rec;

	(void)state;
	m.gates = 4;
	for (int i = 0; i < 50; i++) {
		struct one one;

		simulate(&m, (uint64_t)i + 1, &one);
		narrower += one.aa / one.aa_raw / 50;
	}
	assert_true(narrower < 0.3);
	record_make(&m, 2, &rec);
	for (size_t i = 0; i < rec.n; i++)
		rec.row[i].win.end_ns = (i + 1) * 200000000u;
	before = record_carry(&rec, 0, -1);
	adjust_fit(&rec, of, 2, adjust);
	after = record_carry(&rec, 0, -1);
	record_free(&rec);
	assert_true(before.tau_ns > 0 && after.tau_ns > 0);
	assert_true(fabs(after.hi - after.lo) < 0.5 * fabs(before.hi - before.lo) ||
		    (isnan(before.hi) && isnan(after.hi)));
}

/* The whole machine, from the pilot to the verdict: items of sizes that come in spells. */
static void test_sweeps_of_items_of_different_sizes(void **state)
{
	const double truth[] = { 1, 0 };
	int held = 0, wrong = 0, sure[2] = { 0, 0 }, n = 0;
	double width[2] = { 0, 0 };

	(void)state;
	for (int i = 0; i < 2 * 60; i++) {
		struct sim_cfg sim = drifting(1);
		struct drive_cfg cfg = minute();

		sim.target[1] = (struct sim_target){ .kappa = 0, .hits = 2 };
		sim.n_targets = 2;
		sim.mix_sd = 0.1;
		sim.mix_tau_s = 0.5;
		cfg.time_ns = 20000000000u;
		cfg.n_adjust = i % 2;
		struct sweep_result *res = sim_sweep(&sim, &cfg, (uint64_t)i / 2 + 1);

		for (size_t k = 0; k < 2; k++) {
			const struct sweep_target *t = &res->target[k];

			width[i % 2] += (t->kappa.hi - t->kappa.lo) / 120;
			sure[i % 2] += t->verdict == (k ? VERDICT_HIDDEN : VERDICT_CRITICAL);
			wrong += t->verdict == (k ? VERDICT_CRITICAL : VERDICT_HIDDEN);
			if (!(i % 2))
				continue;
			n++;
			held += t->kappa.lo <= truth[k] && truth[k] <= t->kappa.hi;
		}
		sweep_result_free(res);
	}
	print_message(
		"20 s, items of different sizes: held %d of %d, half-width %.3f, %.3f without "
		"adjusting; %d verdicts, %d without, %d wrong\n",
		held, n, width[1] / 2, width[0] / 2, sure[1], sure[0], wrong);
	assert_true(held >= n * 88 / 100 && wrong == 0); /* 94.6 % of 1600 others */
	assert_true(width[1] < 0.5 * width[0] && sure[1] > sure[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_that_the_delay_moves_is_not_used),
		cmocka_unit_test(test_one_that_is_t_itself_hides_nothing),
		cmocka_unit_test(test_the_speed_beside_a_covariate_is_not_used),
		cmocka_unit_test(test_what_is_not_used_has_a_reason),
		cmocka_unit_test(test_the_same_twice_is_used_once),
		cmocka_unit_test(test_equal_arms_and_the_course_are_adjusted_too),
		cmocka_unit_test(test_sweeps_of_items_of_different_sizes),
		cmocka_unit_test(test_a_covariate_that_explains_narrows),
		cmocka_unit_test(test_one_that_is_of_no_use_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
