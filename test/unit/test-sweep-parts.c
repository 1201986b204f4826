/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>
#include "sweep-judged.h"
#include "src/base/must.h"
#include "sweep/compare.h"
#include "sweep/escalate.h"
#include "sweep/lane.h"
#include "sweep/pilot.h"
#include "sweep/plan.h"
#include "sweep/screen.h"
#include "sweep/stat.h"
#include "sweep/verdict.h"

/* The parts of a sweep one by one: orders, lanes, doses, groups, verdicts, comparisons. */

/* --- order --- */

static void test_two_arms_are_abba_or_baab(void **state)
{
	struct order order;
	struct rng rng;
	int seq[4], first[2] = { 0 };

	(void)state;
	rng_seed(&rng, 1);
	order_init(&order, 2, true);
	for (int i = 0; i < 200; i++) {
		order_block(&order, &rng, seq);
		assert_true(seq[0] == seq[3] && seq[1] == seq[2] && seq[0] != seq[1]);
		first[seq[0]]++;
	}
	assert_int_equal(first[0], 100); /* each square has both */
}

/* Every arm once in a row, and in a square after every other equally often. */
static void williams(size_t n)
{
	size_t rows = n % 2 ? 2 * n : n, after[ORDER_ARMS][ORDER_ARMS] = { { 0 } };
	struct order order;
	struct rng rng;
	int seq[ORDER_ARMS];

	rng_seed(&rng, n);
	order_init(&order, n, false);
	for (size_t r = 0; r < rows; r++) {
		unsigned int seen = 0;

		order_block(&order, &rng, seq);
		for (size_t i = 0; i < n; i++) {
			seen |= 1u << seq[i];
			if (i)
				after[seq[i]][seq[i - 1]]++;
		}
		assert_int_equal(seen, (1u << n) - 1);
	}
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			assert_int_equal(after[a][b], a == b ? 0 : rows / n);
}

static void test_williams_squares_are_balanced(void **state)
{
	(void)state;
	for (size_t n = 2; n <= ORDER_ARMS; n++)
		williams(n);
}

static void test_mirrored_blocks_cancel_a_line(void **state)
{
	struct order order;
	struct rng rng;
	int seq[2 * ORDER_ARMS], sum[ORDER_ARMS] = { 0 };

	(void)state;
	rng_seed(&rng, 3);
	order_init(&order, 5, true);
	for (int b = 0; b < 20; b++) {
		memset(sum, 0, sizeof(sum));
		order_block(&order, &rng, seq);
		for (int i = 0; i < 10; i++)
			sum[seq[i]] += i;
		for (int a = 0; a < 5; a++)
			assert_int_equal(sum[a], 9);
	}
}

static void test_gates_lie_among_the_blocks(void **state)
{
	struct plan_group group = { .n_doses = 2, .dose = { 0, 1 } };
	struct plan_cfg cfg = { .group = &group, .n_groups = 1, .rounds = 12, .gates = 4 };
	size_t columns[8] = { 0 }, windows = 0;
	struct plan_slot slot;
	struct plan plan;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	plan_open(&plan, &cfg, &rng);
	while (plan_next(&plan, &slot)) {
		columns[slot.column]++;
		windows++;
		assert_int_equal(slot.length, 2);
	}
	assert_int_equal(windows, 12 * 6 + 4 * 6);
	assert_int_equal(columns[COLUMN_OFF], 8);
	assert_int_equal(columns[COLUMN_SHAM], 8 + 24);
	assert_int_equal(columns[COLUMN_SHAM2], 8);
	assert_int_equal(columns[COLUMN_DOSE], 24);
	assert_int_equal(columns[COLUMN_DOSE + 1], 24);
	plan_close(&plan);
}

/* Blocks of both groups in each round, and no other columns than SHAM and the group's doses. */
static void test_groups_take_turns(void **state)
{
	struct plan_group group[2] = { { 2, { 0, 1 } }, { 1, { 2 } } };
	struct plan_cfg cfg = { .group = group, .n_groups = 2, .rounds = 6 };
	size_t blocks[2] = { 0 }, first[2] = { 0 }, windows = 0;
	struct plan_slot slot;
	struct plan plan;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	plan_open(&plan, &cfg, &rng);
	assert_int_equal(plan_round(&cfg), 6 + 4);
	while (plan_next(&plan, &slot)) {
		assert_in_range(slot.group, 0, 1);
		if (slot.column >= COLUMN_DOSE)
			assert_int_equal(slot.column - COLUMN_DOSE >= 2, slot.group);
		if (slot.first) {
			first[slot.group] += slot.block % 2 == 0;
			blocks[slot.group]++;
			assert_int_equal(plan_between(&plan), false);
		}
		windows++;
		if (plan_between(&plan))
			assert_int_equal(blocks[0], blocks[1]);
	}
	assert_int_equal(windows, 6 * plan_round(&cfg));
	assert_int_equal(blocks[0], 6);
	assert_true(first[0] && first[1]); /* which is first is left to chance */
	plan_close(&plan);
}

static void test_a_plan_goes_on_with_fewer(void **state)
{
	struct plan_group both = { 3, { 0, 1, 2 } }, one = { 1, { 2 } };
	struct plan_cfg cfg = { .group = &both, .n_groups = 1, .rounds = 5, .gates = 1 };
	size_t before = 0, after = 0;
	struct plan_slot slot;
	bool changed = false;
	struct plan plan;
	struct rng rng;
	int last = -1;

	(void)state;
	rng_seed(&rng, 12);
	plan_open(&plan, &cfg, &rng);
	while (plan_next(&plan, &slot)) {
		assert_true(slot.block == last || (slot.block == last + 1 && slot.first));
		last = slot.block;
		assert_true(last < (int)plan.n_blocks);
		before += !changed && slot.column >= COLUMN_DOSE;
		after += changed && slot.column >= COLUMN_DOSE;
		if (changed && slot.column >= COLUMN_DOSE)
			assert_int_equal(slot.column, COLUMN_DOSE + 2);
		if (!changed && plan_between(&plan) && before == 2 * 6) {
			cfg = (struct plan_cfg){
				.group = &one, .n_groups = 1, .rounds = 7, .gates = 2
			};
			plan_change(&plan, &cfg);
			changed = true;
		}
	}
	assert_int_equal(before, 2 * 6);
	assert_int_equal(after, 7 * 2);
	plan_close(&plan);
}

/* --- lanes --- */

static double felt(const struct lane_set *set, enum lane_mode mode, int role, double *lanes)
{
	double w[32], sum = 0;

	*lanes = lane_weights(set, mode, role, w);
	for (size_t i = 0; i < set->n; i++)
		sum += w[i] * (double)set->total[i].injected_ns;
	return sum;
}

static void test_lanes(void **state)
{
	/* role 0: 2 processes of 2 threads; role 1: one process, its second thread never hit */
	static const struct lane lane[] = {
		{ 0, 1, 1 }, { 0, 1, 2 }, { 0, 2, 3 }, { 0, 2, 4 }, { 1, 9, 5 }, { 1, 9, 6 },
	};
	static const struct lane_count count[] = { { 1, 100, 0, 0 }, { 1, 100, 0, 0 },
						   { 1, 100, 0, 0 }, { 1, 100, 0, 0 },
						   { 1, 50, 0, 0 },  { 0, 0, 0, 0 } };
	struct lane_set set = { .lane = lane, .total = count, .n = 6 };
	double lanes;

	(void)state;
	assert_true(felt(&set, LANE_PROCESS, -1, &lanes) == 250);
	assert_true(lanes == 3);
	assert_true(felt(&set, LANE_PROCESS, 0, &lanes) == 200);
	assert_true(lanes == 2);
	assert_true(felt(&set, LANE_THREAD, -1, &lanes) == 150);
	assert_true(lanes == 5);
	assert_true(felt(&set, LANE_ALL, -1, &lanes) == 450);
	assert_true(lanes == 1);
	/* Nothing was seen: as by process, and the threads may be side by side. */
	assert_true(felt(&set, LANE_AUTO, -1, &lanes) == 250);
	assert_true(felt(&set, LANE_LEAST, -1, &lanes) == 250);
	assert_true(felt(&set, LANE_MOST, -1, &lanes) == 150);
	set.n = 0;
	assert_true(felt(&set, LANE_PROCESS, -1, &lanes) == 0);
	assert_true(lanes == 0);
}

/* 28 processes one after another are one lane, and two that are replaced in turn are two. */
static void test_lanes_count_as_long_as_they_live(void **state)
{
	struct lane_count count[32];
	struct lane lane[32];
	struct lane_set set = { .lane = lane, .total = count, .n = 28 };
	double lanes;

	(void)state;
	for (int i = 0; i < 32; i++) {
		lane[i] = (struct lane){ 0, 100 + i, i };
		count[i] = (struct lane_count){ 1, 100, 0, 1 - 1.0 / 28 };
	}
	assert_float_equal(felt(&set, LANE_AUTO, -1, &lanes), 2800, 1e-6);
	assert_float_equal(lanes, 1, 1e-9);
	assert_float_equal(felt(&set, LANE_PROCESS, -1, &lanes), 2800, 1e-6);
	for (int i = 0; i < 28; i++)
		count[i].gone = 1 - 1.0 / 14;
	assert_float_equal(felt(&set, LANE_AUTO, -1, &lanes), 1400, 1e-6);
	/* What is left of processes of which no more is known is no lane of its own. */
	count[28] = (struct lane_count){ 1, 100, 0, 1 };
	set.n = 29;
	assert_float_equal(felt(&set, LANE_AUTO, -1, &lanes), 1450, 1e-6);
}

/* Looks at 8 threads, at each of which `surely` and `perhaps` are at work. */
static struct lane_scan seen(double n, double share, double surely, double perhaps)
{
	return (struct lane_scan){ .n = n,
				   .surely = n * share * surely,
				   .surely2 = n * share * surely * surely,
				   .perhaps = n * share * perhaps,
				   .perhaps2 = n * share * perhaps * perhaps };
}

static void lanes_are(const struct lane_scan *scan, double lanes, double least, double most)
{
	struct lane_count count[8];
	struct lane lane[8];
	struct lane_set set = { lane, count, 8, scan, 1, 0 };
	double got;

	for (int i = 0; i < 8; i++) {
		lane[i] = (struct lane){ 0, 100, i };
		count[i] = (struct lane_count){ 1, 100, 0, 0 };
	}
	felt(&set, LANE_AUTO, -1, &got);
	assert_float_equal(got, lanes, 1e-6);
	felt(&set, LANE_LEAST, -1, &got);
	assert_float_equal(got, least, 1e-6);
	felt(&set, LANE_MOST, -1, &got);
	assert_float_equal(got, most, 1e-6);
}

static void test_lanes_by_what_works_side_by_side(void **state)
{
	struct lane_scan scan = seen(100, 1, 8, 8);

	(void)state;
	lanes_are(&scan, 8, 8, 8); /* a pool */
	scan = seen(100, 0.3, 8, 8);
	lanes_are(&scan, 8, 8, 8); /* ... that waits together for seven parts of ten */
	scan = seen(100, 1, 1, 1);
	lanes_are(&scan, 1, 1, 1); /* one works, the others wait for it */
	scan = seen(100, 1, 4, 4);
	lanes_are(&scan, 4, 4, 4); /* four have something to do */
	scan = seen(100, 1, 1, 8);
	lanes_are(&scan, 1, 1, 8); /* the others read from sockets: who knows */
	scan = seen(100, 1, 7, 8);
	lanes_are(&scan, 8, 8, 8); /* it does not matter */
	scan = seen(100, 1, 1.4, 1.4);
	lanes_are(&scan, 1, 1, 1.4); /* they take turns, or nearly so */
	scan = seen(5, 1, 8, 8);
	lanes_are(&scan, 1, 1, 8); /* too few looks */
	/* One at a time, and they change while they are looked at: any number is seen. */
	scan = (struct lane_scan){ 100, 90, 100, 190, 100, 190 };
	lanes_are(&scan, 1, 1, 1.9);
	/* Go's: a request goes from thread to thread, and a thread without work looks for some. */
	scan = (struct lane_scan){ 100, 90, 120, 192, 142, 212 };
	lanes_are(&scan, 1, 1, 212.0 / 142);
}

/* --- doses --- */

/* T0 100 us; the response to x by a rule; noise of +- 0.2 us. */
static size_t escalated(double kappa, double slack, double bound, double *x)
{
	struct escalate esc;
	int i = 0;

	assert_true(escalate_open(&esc, 100e3, bound, 0));
	for (double dose = escalate_next(&esc); dose > 0; dose = escalate_next(&esc)) {
		double d = kappa * fmax(0, dose - slack), v[2] = { d - 200, d + 200 };

		escalate_tell(&esc, dose, v, 2);
		assert_true(++i <= ESCALATE_STEPS);
	}
	return escalate_doses(&esc, ESCALATE_DOSES, x);
}

static void test_doses_lie_around_the_response(void **state)
{
	double x[ESCALATE_DOSES];
	size_t n, above = 0;

	(void)state;
	n = escalated(1, 0, 0.3, x);
	assert_int_equal(n, 4);
	assert_true(x[3] <= 30e3 && x[3] >= 8e3);
	n = escalated(1, 12e3, 0.3, x);
	assert_int_equal(n, 4);
	assert_true(x[0] < 12e3 && x[0] > 6e3);
	for (size_t i = 0; i < n; i++)
		above += x[i] > 12e3;
	assert_true(above >= 2);
	n = escalated(0, 0, 0.3, x);
	assert_int_equal(n, 2);
	assert_true(x[0] == 15e3 && x[1] == 30e3);
}

/* In sweep and in find: as much room from the smallest dose to the largest as a slack takes. */
static void test_too_often_for_a_delay_of_each_call(void **state)
{
	(void)state;
	assert_float_equal(escalate_every(0, 0.3), 1, 0);
	assert_float_equal(escalate_every(0.3 / 16, 0.3), 1, 0);
	assert_float_equal(escalate_every(0.02, 0.3), 2, 0);
	assert_float_equal(escalate_every(0.3, 0.3), 16, 0);
	assert_float_equal(escalate_every(1.6e6, 0.64e6), 64, 0); /* 40 000 calls of 40 ns */
	assert_float_equal(escalate_every(NAN, 0.3), 1, 0);
}

/* A convoy slows more than it is delayed: the bound holds for what comes of it too. */
static void test_doses_keep_the_slowdown_below_the_bound(void **state)
{
	double x[ESCALATE_DOSES];
	size_t n;

	(void)state;
	n = escalated(4, 0, 0.1, x);
	assert_true(n >= 1);
	assert_true(4 * x[n - 1] <= 10e3 * 1.05);
}

static void test_a_dose_that_cannot_be_given(void **state)
{
	struct escalate esc;
	double x[ESCALATE_DOSES];

	(void)state;
	assert_false(escalate_open(&esc, 100e3, 0.3, 31e3));
	assert_true(escalate_next(&esc) == 0);
	assert_int_equal(escalate_doses(&esc, 4, x), 0);
	assert_false(escalate_open(&esc, NAN, 0.3, 0));
	/* nor is half of one */
	assert_true(escalate_open(&esc, 100e3, 0.3, 20e3));
	for (double dose = escalate_next(&esc); dose > 0; dose = escalate_next(&esc))
		escalate_tell(&esc, dose, (double[]){ -200, 200 }, 2);
	assert_int_equal(escalate_doses(&esc, 4, x), 1);
	assert_true(x[0] == 30e3);
}

/* --- windows --- */

static void test_windows_fit_the_budget(void **state)
{
	struct pilot pilot = { 100e3, 50e6, NAN, 0.01, 50e6, { 0.01, 0.008, 0.007, 0.006 } };
	struct sizing_cfg cfg = {
		.time_ns = 60000000000u, .block_windows = 10, .gate_windows = 6, .gates_min = 4
	};
	struct sizing size;

	(void)state;
	for (uint64_t s = 1; s <= 100; s += 3) {
		double used;

		cfg.budget_ns = s * 1000000000u;
		pilot_size(&pilot, &cfg, &size);
		used = (double)(size.blocks * 10 + size.gates * 6) *
		       (double)(size.window_ns + size.guard_ns);
		assert_true(!size.enough || used <= (double)cfg.budget_ns * 1.001);
		assert_true(!size.enough || size.blocks >= PILOT_BLOCKS_MIN);
		assert_true(size.enough == (size.needed_ns <= (double)cfg.budget_ns));
	}
	pilot.period_ns = 100e6; /* a window of several periods, a guard of one */
	pilot_size(&pilot, &cfg, &size);
	assert_true(size.window_ns >= 400000000u && size.guard_ns >= 100000000u);
}

static void test_settling(void **state)
{
	struct pilot_window win[PILOT_SETTLE];

	(void)state;
	for (int i = 0; i < PILOT_SETTLE; i++)
		win[i] = (struct pilot_window){ .t_ns = 100 + i % 3, .items = 10, .time_ns = 1000 };
	assert_true(pilot_settled(win, PILOT_SETTLE));
	assert_false(pilot_settled(win, PILOT_SETTLE - 1));
	for (int i = 0; i < PILOT_SETTLE; i++)
		win[i].t_ns = 200 - 3 * i;
	assert_false(pilot_settled(win, PILOT_SETTLE));
	for (int i = 0; i < PILOT_SETTLE; i++)
		win[i].t_ns = 200 - 0.1 * i; /* a trend, and too small to wait for */
	assert_true(pilot_settled(win, PILOT_SETTLE));
	win[3].t_ns = NAN;
	assert_false(pilot_settled(win, PILOT_SETTLE));
}

static void test_update_period(void **state)
{
	struct pilot_window win[40];
	struct pilot pilot;

	(void)state;
	for (int i = 0; i < 40; i++) /* 25 ms windows of a counter that moves every 100 ms */
		win[i] = (struct pilot_window){ .t_ns = i % 4 ? NAN : 25e3,
						.items = i % 4 ? 0 : 1000,
						.time_ns = 25e6 };
	pilot_study(win, 40, &pilot);
	assert_true(fabs(pilot.period_ns - 100e6) < 1);
	assert_true(fabs(pilot.t_ns - 100e3) < 1);
	for (int i = 0; i < 40; i++)
		win[i] = (struct pilot_window){
			.t_ns = 100e3, .items = 250, .time_ns = 25e6, .changes = 5
		};
	pilot_study(win, 40, &pilot);
	assert_true(fabs(pilot.period_ns - 5e6) < 1);
	for (int i = 0; i < 40; i++)
		win[i].items = 0;
	pilot_study(win, 40, &pilot);
	assert_true(isnan(pilot.t_ns) && isnan(pilot.period_ns));
}

/* --- screening --- */

/* Exact answers: the slope of a group is the mean of its members' kappas, +- se. */
static size_t screened(const double *kappa, size_t n, double se, size_t *tests, size_t *survivor)
{
	size_t target[64], found;
	struct screen screen;
	struct rng rng;

	for (size_t i = 0; i < n; i++)
		target[i] = i;
	rng_seed(&rng, 11);
	screen_open(&screen, target, n, 0.1, &rng);
	for (*tests = 0;; ++*tests) {
		const size_t *member;
		size_t m = screen_next(&screen, &member);
		double sum = 0;

		if (!m)
			break;
		for (size_t i = 0; i < m; i++)
			sum += kappa[member[i]] / (double)m;
		screen_tell(&screen, &(struct sweep_estimate){ sum, sum - se, sum + se });
	}
	found = screen_survivors(&screen, survivor);
	for (size_t i = 0; i < n; i++)
		assert_true(screen.state[i] != SCREEN_OPEN);
	screen_close(&screen);
	return found;
}

static void test_screening_finds_the_few(void **state)
{
	double kappa[64] = { [17] = 1, [40] = 0.6 };
	size_t tests, survivor[64], n = screened(kappa, 64, 0.001, &tests, survivor);

	(void)state;
	assert_true(tests < 30); /* and not 64 */
	assert_true(n <= 4);
	assert_true(survivor[0] == 17 || survivor[1] == 17 || survivor[2] == 17 ||
		    survivor[3] == 17);
	assert_true(survivor[0] == 40 || survivor[1] == 40 || survivor[2] == 40 ||
		    survivor[3] == 40);
	memset(kappa, 0, sizeof(kappa));
	n = screened(kappa, 64, 0.001, &tests, survivor);
	assert_int_equal(n, 0);
	assert_int_equal(tests, 2);
}

/* What is not shown to be hidden is never dropped. */
static void test_screening_drops_nothing_in_doubt(void **state)
{
	double kappa[16] = { 0 };
	size_t tests, survivor[16];

	(void)state;
	assert_int_equal(screened(kappa, 16, 0.2, &tests, survivor), 16);
}

static void test_screening_stopped_leaves_survivors(void **state)
{
	size_t target[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, survivor[8];
	struct screen screen;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	screen_open(&screen, target, 8, 0.1, &rng);
	screen_tell(&screen, &(struct sweep_estimate){ 0, -0.01, 0.01 });
	screen_stop(&screen);
	assert_int_equal(screen_survivors(&screen, survivor), 4);
	screen_close(&screen);
}

/* --- verdicts --- */

static void verdict_is(double est, double half, enum sweep_verdict want)
{
	struct sweep_result *res = judged(est, half);

	verdict_judge(res);
	if (res->target[0].verdict != want)
		fail_msg("%g +- %g: %s (%s)", est, half, sweep_verdict_name(res->target[0].verdict),
			 res->target[0].reason);
	assert_true(res->target[0].reason[0]);
	assert_int_equal(sweep_exit_status(res), want == VERDICT_INCONCLUSIVE ? 6 : 0);
	sweep_result_free(res);
}

static void test_verdicts_by_interval(void **state)
{
	(void)state;
	verdict_is(1, 0.05, VERDICT_CRITICAL);
	verdict_is(1, 0.45, VERDICT_CRITICAL);
	verdict_is(1.8, 0.2, VERDICT_CRITICAL);
	verdict_is(0.95, 0.02, VERDICT_CRITICAL);
	verdict_is(1, 0.8, VERDICT_PARTIAL); /* at least partly */
	verdict_is(1, 0.95, VERDICT_INCONCLUSIVE);
	verdict_is(0.4, 0.1, VERDICT_PARTIAL);
	verdict_is(0.8, 0.05, VERDICT_PARTIAL);
	verdict_is(0, 0.05, VERDICT_HIDDEN);
	verdict_is(0.05, 0.04, VERDICT_HIDDEN); /* felt, and too little to matter */
	verdict_is(0, 0.2, VERDICT_INCONCLUSIVE);
	verdict_is(0.1, 0.05, VERDICT_INCONCLUSIVE);
	verdict_is(-0.3, 0.1, VERDICT_INCONCLUSIVE); /* faster by being slowed */
}

/* Of 4 workers a request passes one; of 4 ranks it passes all, and it cannot be seen. */
static void test_lanes_of_a_response(void **state)
{
	struct lane_count count[4];
	struct lane lane[4];
	struct lane_scan scan = seen(100, 1, 4, 4);
	struct lane_set set = { lane, count, 4, &scan, 1, 1000 };
	double lanes;

	(void)state;
	for (int i = 0; i < 4; i++) {
		lane[i] = (struct lane){ 0, 100 + i, i };
		count[i] = (struct lane_count){ 250, 1000, 0, 0 };
	}
	assert_float_equal(felt(&set, LANE_AUTO, -1, &lanes), 4000, 1e-6);
	assert_float_equal(felt(&set, LANE_MOST, -1, &lanes), 4000, 1e-6);
	for (int i = 0; i < 4; i++)
		count[i].hits = 1000;
	assert_float_equal(felt(&set, LANE_AUTO, -1, &lanes), 1000, 1e-6);
	assert_float_equal(felt(&set, LANE_LEAST, -1, &lanes), 4000, 1e-6);
	for (int i = 0; i < 4; i++)
		lane[i].process = 100; /* threads of one process are a pool, most likely */
	assert_float_equal(felt(&set, LANE_AUTO, -1, &lanes), 4000, 1e-6);
	assert_float_equal(felt(&set, LANE_MOST, -1, &lanes), 1000, 1e-6);
}

static void test_verdicts_hold_for_any_number_of_lanes(void **state)
{
	struct sweep_result *res = judged(0.06, 0.01);
	struct sweep_target *target = &res->target[0];

	(void)state;
	target->lanes_unclear = true;
	target->range[0] = target->kappa;
	target->range[1] = (struct sweep_estimate){ 0.96, 0.8, 1.12 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(target->reason, "0.06 if they take turns and 0.96"));
	target->range[1] = (struct sweep_estimate){ 0.07, 0.05, 0.09 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_HIDDEN);
	sweep_result_free(res);

	/* Amplified only if it is so with the fewest. */
	res = judged(4, 0.1);
	target = &res->target[0];
	target->lanes_unclear = true;
	target->range[0] = (struct sweep_estimate){ 1, 0.97, 1.03 };
	target->range[1] = target->kappa;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_CRITICAL);
	assert_non_null(strstr(target->reason, "in full"));
	sweep_result_free(res);
}

/* Equal arms that differ by 20 % show nothing of an effect of 10 %. */
static void test_no_verdict_within_the_noise(void **state)
{
	static const double est[] = { 1, 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct sweep_result *res = judged(est[i], 0.05);
		struct sweep_target *target = &res->target[0];

		target->n_doses = 2;
		target->dose = calloc(2, sizeof(*target->dose));
		assert_non_null(target->dose);
		target->t0_ns = 1000;
		target->dose[1].x_ns = 100;
		target->dose[1].delta_ns = (struct sweep_estimate){ 100 * est[i], 0, 0 };
		res->gates.aa_known = true;
		res->gates.aa = (struct sweep_estimate){ 0.1, -0.1, 0.3 };
		verdict_judge(res);
		assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
		assert_non_null(strstr(target->reason, "equal arms may differ by 20 %"));
		res->gates.aa = (struct sweep_estimate){ 0, -0.05, 0.05 };
		verdict_judge(res);
		assert_int_equal(target->verdict, i ? VERDICT_HIDDEN : VERDICT_CRITICAL);
		sweep_result_free(res);
	}
}

static void test_gates_before_verdicts(void **state)
{
	struct sweep_result *res = judged(1, 0.05);
	struct sweep_target *target = &res->target[0];

	(void)state;
	target->hits = 0;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_NOT_CALLED);
	target->hits = 1;
	target->blocks = 1;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	target->blocks = 12;
	target->lost = 3;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INVALID);
	target->lost = 0;
	target->kappa = SWEEP_UNKNOWN;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	sweep_result_free(res);

	res = judged(0, 0.05);
	res->gates.control_asked = true;
	res->gates.control = (struct sweep_estimate){ 0.02, -0.1, 0.14 };
	verdict_load(&res->gates, 0.1, NAN, NULL, NULL);
	assert_int_equal(res->gates.load, LOAD_OPEN);
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_INVALID);
	res->gates.control = (struct sweep_estimate){ 0.8, 0.75, 0.85 };
	verdict_load(&res->gates, 0.1, NAN, NULL, NULL);
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_INVALID);
	sweep_result_free(res);
}

static void test_response_needs_no_closed_load(void **state)
{
	struct sweep_gates gates = { 0 };
	struct sweep_estimate flat = { 0, -0.02, 0.02 }, steep = { 1, 0.9, 1.1 };

	(void)state;
	verdict_load(&gates, 0.1, NAN, &flat, &steep);
	assert_int_not_equal(gates.load, LOAD_OPEN);
	assert_non_null(strstr(gates.load_reason, "open loop"));
	verdict_load(&gates, 0.1, 0.99, NULL, NULL);
	assert_int_equal(gates.load, LOAD_CLOSED);
	verdict_load(&gates, 0.1, 0.5, NULL, NULL);
	assert_int_equal(gates.load, LOAD_UNKNOWN);
}

/* p = 0.02 each, and twenty of them: one such p is no news. */
static void test_holm_over_many_targets(void **state)
{
	struct sweep_result *res = sweep_result_new(20);

	(void)state;
	res->threshold = 0.1;
	for (size_t i = 0; i < 20; i++) {
		struct sweep_result *one = judged(i ? 0 : 1, i ? 0.05 : 0.4);

		free(res->target[i].spec);
		res->target[i] = one->target[0];
		one->n_targets = 0;
		sweep_result_free(one);
	}
	res->target[0].p_random = 0.02;
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_CRITICAL); /* the others' p are small */
	assert_true(res->target[0].p_adjusted >= 0.02);
	for (size_t i = 1; i < 20; i++)
		res->target[i].p_felt = 0.02;
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_INCONCLUSIVE);
	assert_true(res->target[0].p_adjusted >= 0.05);
	sweep_result_free(res);
}

static void test_holm_by_hand(void **state)
{
	double p[] = { 0.01, 0.04, NAN, 0.03, 0.005 };

	(void)state;
	stat_holm(p, 5);
	assert_true(fabs(p[4] - 0.02) < 1e-12 && fabs(p[0] - 0.03) < 1e-12);
	assert_true(fabs(p[3] - 0.06) < 1e-12 && fabs(p[1] - 0.06) < 1e-12 && isnan(p[2]));
}

/* --- compare --- */

static struct sweep_result *before_or_after(double kappa, double half, double slack, double room)
{
	struct sweep_result *res = judged(kappa, half);

	res->target[0].slack_ns = (struct sweep_estimate){ slack, slack - room, slack + room };
	res->target[0].t0_ns = 100;
	verdict_judge(res);
	return res;
}

static void test_what_changed(void **state)
{
	struct sweep_result *a = before_or_after(1, 0.06, 0, 0);
	struct sweep_result *b = before_or_after(0.5, 0.08, 400, 30);
	struct compare cmp;

	(void)state;
	compare_results(a, b, &cmp);
	assert_int_equal(cmp.n_rows, 1);
	assert_int_equal(cmp.changed, 1);
	assert_int_equal(cmp.row[0].kappa_state, COMPARE_CHANGED);
	assert_true(fabs(cmp.row[0].kappa.est + 0.5) < 1e-12);
	assert_true(fabs(cmp.row[0].kappa.hi - (-0.5 + 0.1)) < 1e-9); /* 0.06, 0.08: 0.1 */
	assert_int_equal(cmp.row[0].slack_state, COMPARE_CHANGED);
	assert_true(cmp.row[0].verdict_changed);
	compare_free(&cmp);
	compare_results(a, a, &cmp);
	assert_int_equal(cmp.row[0].kappa_state, COMPARE_SAME);
	assert_true(cmp.row[0].kappa.est == 0 && cmp.row[0].kappa.hi > 0.05);
	assert_int_equal(cmp.changed, 0);
	compare_free(&cmp);
	sweep_result_free(a);
	sweep_result_free(b);
}

static void test_comparing_the_unknown(void **state)
{
	struct sweep_result *a = before_or_after(1, 0.06, 0, 0);
	struct sweep_result *b = before_or_after(0, 0.06, 0, 0);
	struct compare cmp;

	(void)state;
	a->target[0].slack_ns = (struct sweep_estimate){ 100, 90, 110 };
	b->target[0].slack_ns = (struct sweep_estimate){ NAN, 200, INFINITY }; /* beyond */
	compare_results(a, b, &cmp);
	assert_int_equal(cmp.row[0].slack_state, COMPARE_CHANGED);
	assert_true(isnan(cmp.row[0].slack_ns.est) && cmp.row[0].slack_ns.lo == 90);
	compare_free(&cmp);
	b->target[0].slack_ns.lo = 50; /* may be the same */
	compare_results(a, b, &cmp);
	assert_int_equal(cmp.row[0].slack_state, COMPARE_UNKNOWN);
	compare_free(&cmp);
	b->target[0].kappa = b->target[0].slack_ns = SWEEP_UNKNOWN;
	compare_results(a, b, &cmp);
	assert_int_equal(cmp.row[0].kappa_state, COMPARE_UNKNOWN);
	assert_int_equal(cmp.row[0].slack_state, COMPARE_UNKNOWN);
	compare_free(&cmp);
	strcpy(b->target[0].spec, "b");
	compare_results(a, b, &cmp);
	assert_int_equal(cmp.n_rows, 2);
	assert_null(cmp.row[0].b);
	assert_null(cmp.row[1].a);
	assert_string_equal(cmp.row[1].spec, "b");
	compare_free(&cmp);
	sweep_result_free(a);
	sweep_result_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_arms_are_abba_or_baab),
		cmocka_unit_test(test_williams_squares_are_balanced),
		cmocka_unit_test(test_mirrored_blocks_cancel_a_line),
		cmocka_unit_test(test_gates_lie_among_the_blocks),
		cmocka_unit_test(test_groups_take_turns),
		cmocka_unit_test(test_a_plan_goes_on_with_fewer),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_lanes_count_as_long_as_they_live),
		cmocka_unit_test(test_lanes_by_what_works_side_by_side),
		cmocka_unit_test(test_lanes_of_a_response),
		cmocka_unit_test(test_no_verdict_within_the_noise),
		cmocka_unit_test(test_verdicts_hold_for_any_number_of_lanes),
		cmocka_unit_test(test_doses_lie_around_the_response),
		cmocka_unit_test(test_too_often_for_a_delay_of_each_call),
		cmocka_unit_test(test_doses_keep_the_slowdown_below_the_bound),
		cmocka_unit_test(test_a_dose_that_cannot_be_given),
		cmocka_unit_test(test_windows_fit_the_budget),
		cmocka_unit_test(test_settling),
		cmocka_unit_test(test_update_period),
		cmocka_unit_test(test_screening_finds_the_few),
		cmocka_unit_test(test_screening_drops_nothing_in_doubt),
		cmocka_unit_test(test_screening_stopped_leaves_survivors),
		cmocka_unit_test(test_verdicts_by_interval),
		cmocka_unit_test(test_gates_before_verdicts),
		cmocka_unit_test(test_response_needs_no_closed_load),
		cmocka_unit_test(test_holm_over_many_targets),
		cmocka_unit_test(test_holm_by_hand),
		cmocka_unit_test(test_what_changed),
		cmocka_unit_test(test_comparing_the_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
