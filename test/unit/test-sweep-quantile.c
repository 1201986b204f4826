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

#include "sweep/quantile.h"
#include "sweep/rng.h"
#include "sweep/stat.h"

/*
 * Responses with a known answer: fast ones, and slow ones that alone pass the function that is
 * delayed. So the mean feels the share of them, p99 feels the whole of the delay, and p50 nothing.
 */
#define RUNS	400
#define BUCKETS (16 * 1024)

struct model {
	double fast_ns, slow_ns, share, spread; /* log-normal, each of them */
	double drift;				/* of a block, as a share, normal */
	double delay_ns;			/* the largest dose; the other one is half of it */
	double steps;				/* buckets for each power of two; 0: few, by hand */
	int blocks, responses;			/* of each arm in a block */
};

static const double few[] = { 0, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, INFINITY };

static struct model usual(void)
{
	return (struct model){ .fast_ns = 1e6,
			       .slow_ns = 10e6,
			       .share = 0.05,
			       .spread = 0.2,
			       .drift = 0.03,
			       .delay_ns = 3e6,
			       .steps = 1024,
			       .blocks = 8,
			       .responses = 400 };
}

static size_t bucket_of(const struct model *m, double ns)
{
	size_t i = 0;

	if (m->steps > 0)
		return (size_t)fmax(0, (log2(ns) - 16) * m->steps);
	while (few[i + 1] < ns)
		i++;
	return i;
}

static struct sweep_bucket bounds(const struct model *m, size_t i)
{
	if (m->steps > 0)
		return (struct sweep_bucket){ exp2(16 + (double)i / m->steps),
					      exp2(16 + (double)(i + 1) / m->steps), 0 };
	return (struct sweep_bucket){ few[i], few[i + 1], 0 };
}

static int blind = -1; /* a block one of whose windows has no histogram */

static void add_window(struct record *rec, const struct model *m, struct rng *rng, double scale,
		       int block, int arm)
{
	static double count[BUCKETS];
	static struct sweep_bucket bucket[BUCKETS];
	struct lane_count lane = { .gone = 0 };
	struct record_row row = { .column = arm ? COLUMN_DOSE + arm - 1 : COLUMN_SHAM,
				  .length = 1,
				  .lane = &lane,
				  .n_lanes = 1,
				  .bucket = bucket };
	double delay = m->delay_ns * arm / 2;

	memset(count, 0, sizeof(count));
	row.win = (struct sweep_window){ .arm = arm ? ARM_DOSE : ARM_SHAM,
					 .block = block,
					 .dose = arm,
					 .delay_ns = (uint64_t)delay,
					 .time_ns = 1000000000,
					 .items = m->responses,
					 .response_count = m->responses };
	for (int i = 0; i < m->responses; i++) {
		bool slow = rng_uniform(rng) < m->share;
		double ns = scale * (slow ? m->slow_ns : m->fast_ns) *
			    exp(m->spread * rng_normal(rng));

		ns += slow ? delay : 0;
		lane.hits += slow;
		lane.injected_ns += slow ? (uint64_t)delay : 0;
		row.win.response_sum_ns += ns;
		count[bucket_of(m, ns)]++;
	}
	for (size_t i = 0; i < sizeof(count) / sizeof(*count); i++)
		if (count[i] > 0) {
			bucket[row.n_buckets] = bounds(m, i);
			bucket[row.n_buckets++].n = count[i];
		}
	if (block == blind && arm == 1)
		row.n_buckets = 0;
	record_add(rec, &row);
}

static void simulate(const struct model *m, uint64_t seed, struct sweep_target *target)
{
	struct record rec = { .response = true };
	struct record_of of = { .n_doses = 2 };
	struct record_view view = { .mode = LANE_ALL, .role = -1 };
	struct infer_data data;
	struct rng rng;

	rng_seed(&rng, seed * 7919 + 3);
	rec.lane = calloc(1, sizeof(*rec.lane));
	rec.n_lanes = 1;
	for (int b = 0; b < m->blocks; b++) {
		double scale = 1 + m->drift * rng_normal(&rng);

		for (int arm = 0; arm < 3; arm++)
			add_window(&rec, m, &rng, scale, b, arm);
	}
	record_data(&rec, &of, &view, &data, NULL);
	memset(target, 0, sizeof(*target));
	quantile_fill(&rec, &of, &data, target);
	record_data_free(&data);
	record_free(&rec);
}

static bool holds(const struct sweep_estimate *e, double truth)
{
	return e->lo <= truth && truth <= e->hi;
}

struct tally {
	int delta, slope, slower, known;
	double width, est;
};

/* Of one quantile: how often the intervals hold what is true. */
static struct tally cover(const char *name, const struct model *m, int quantile, double delta,
			  double slope, int runs)
{
	struct tally t = { 0 };

	for (int i = 0; i < runs; i++) {
		struct sweep_target target;
		const struct sweep_quantile *q = &target.quantile[quantile];

		simulate(m, (uint64_t)i + 1, &target);
		t.delta += holds(&q->delta_ns, delta);
		t.slope += holds(&q->slope, slope);
		t.known += !isnan(q->delta_ns.est);
		t.width += (q->delta_ns.hi - q->delta_ns.lo) / 2 / runs;
		t.est += isnan(q->delta_ns.est) ? 0 : q->delta_ns.est;
	}
	print_message("%-22s change held %5.1f %%, slope %5.1f %%, known %3d of %d, half-width "
		      "%.3g, mean %.4g of %.4g\n",
		      name, 100.0 * t.delta / runs, 100.0 * t.slope / runs, t.known, runs, t.width,
		      t.known ? t.est / t.known : NAN, delta);
	return t;
}

/* 92 to 98 %: four deviations of a binomial of 600 are 3.6 %. */
static void right(const struct tally *t, int runs)
{
	assert_in_range(t->delta, runs * 92 / 100, runs * 98 / 100);
	assert_in_range(t->slope, runs * 92 / 100, runs * 98 / 100);
}

static void test_p99_moves_by_all_of_it_and_p50_by_nothing(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	t = cover("p99, 8 blocks", &m, 2, m.delay_ns, 1 / m.share, RUNS);
	right(&t, RUNS);
	t = cover("p50, 8 blocks", &m, 0, 0, 0, RUNS);
	right(&t, RUNS);
	m.blocks = 24;
	t = cover("p99, 24 blocks", &m, 2, m.delay_ns, 1 / m.share, RUNS);
	right(&t, RUNS);
	m.blocks = 5;
	m.responses = 800;
	t = cover("p99, 5 blocks", &m, 2, m.delay_ns, 1 / m.share, RUNS);
	right(&t, RUNS);
}

static void test_p90_of_what_all_requests_pass(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	m.share = 1;
	t = cover("p90, all pass", &m, 1, m.delay_ns, 1, RUNS);
	right(&t, RUNS);
	m.drift = 0.2; /* wider than need be: a block that is slow has the slow ones of all */
	t = cover("p90, much drift", &m, 1, m.delay_ns, 1, RUNS);
	assert_true(t.delta >= RUNS * 92 / 100 && t.slope >= RUNS * 92 / 100);
	assert_true(t.width < 0.2 * m.delay_ns);
}

/* The buckets of timed calls: 2 % wide, which the interval allows for. */
static void test_buckets_of_calls(void **state)
{
	struct model m = usual();
	struct tally t;

	(void)state;
	m.steps = 32;
	t = cover("p99, calls", &m, 2, m.delay_ns, 1 / m.share, RUNS);
	assert_true(t.delta >= RUNS * 93 / 100 && t.slope >= RUNS * 93 / 100);
	assert_true(t.known >= RUNS * 99 / 100);
	assert_true(t.est / t.known > 0.95 * m.delay_ns && t.est / t.known < 1.05 * m.delay_ns);
	t = cover("p50, calls", &m, 0, 0, 0, RUNS);
	assert_true(t.delta >= RUNS * 93 / 100 && t.known <= RUNS / 2);
}

/* The bucket of 10 to 30 ms holds p99 in all arms: a number would be invented. */
static void test_wide_buckets_say_so(void **state)
{
	struct model m = usual();
	struct sweep_target target;
	const struct sweep_quantile *q = &target.quantile[2];
	struct tally t;

	(void)state;
	m.steps = 0;
	t = cover("p99, few buckets", &m, 2, m.delay_ns, 1 / m.share, 100);
	assert_int_equal(t.delta, 100);
	assert_int_equal(t.known, 0);
	m.responses = 4000;
	simulate(&m, 1, &target);
	assert_true(q->unresolved);
	assert_non_null(strstr(q->reason, "between 10ms and 30ms"));
	assert_true(q->bucket_ns[0][0] == 1e7 && q->bucket_ns[1][1] == 3e7);
	assert_true(q->delta_ns.hi - q->delta_ns.lo >= 40e6);
	/* Half of the slow ones were slower than 10 ms; with 3 ms more, 95 % of them. */
	assert_true(q->bound_ns == 1e7 && fabs(q->slower - 0.025) < 0.01);
	assert_true(q->slower_delta.lo > 0.005 && q->slower_delta.hi < 0.04);
}

static void test_beyond_all_bounds_is_unknown(void **state)
{
	struct model m = usual();
	struct sweep_target target;

	(void)state;
	m.steps = 0;
	m.slow_ns = 300e6;
	simulate(&m, 1, &target);
	assert_non_null(strstr(target.quantile[2].reason, "beyond the last bound of the buckets"));
	assert_true(isnan(target.quantile[2].delta_ns.est));
	assert_true(isnan(target.quantile[2].delta_ns.lo));
}

static void test_a_block_without_a_histogram_is_left_out(void **state)
{
	struct model m = usual();
	struct sweep_target target;

	(void)state;
	m.blocks = 9;
	blind = 3;
	simulate(&m, 1, &target);
	assert_true(isfinite(target.quantile[2].delta_ns.est));
	m.blocks = 4; /* too many are left out */
	simulate(&m, 1, &target);
	blind = -1;
	assert_non_null(strstr(target.quantile[2].reason, "no buckets"));
}

static void test_few_responses_have_no_p99(void **state)
{
	struct model m = usual();
	struct sweep_target target;

	(void)state;
	m.responses = 100;
	simulate(&m, 1, &target);
	assert_non_null(
		strstr(target.quantile[2].reason, "800 responses in an arm, and 1000 are needed"));
	assert_true(isfinite(target.quantile[1].sham_ns.est));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_p99_moves_by_all_of_it_and_p50_by_nothing),
		cmocka_unit_test(test_p90_of_what_all_requests_pass),
		cmocka_unit_test(test_buckets_of_calls),
		cmocka_unit_test(test_wide_buckets_say_so),
		cmocka_unit_test(test_beyond_all_bounds_is_unknown),
		cmocka_unit_test(test_a_block_without_a_histogram_is_left_out),
		cmocka_unit_test(test_few_responses_have_no_p99),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
