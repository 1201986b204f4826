/* SPDX-License-Identifier: MIT */
/*
 * The page of a sweep and its headline. With SB_PAGES=DIR the pages of all samples are written
 * there, each with its JSON document: test/case/sweep-page.sh looks at them with a parser and in a
 * browser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/must.h"
#include "src/out/sweep-headline.h"
#include "src/out/sweep.h"
#include "sweep/rng.h"

#define ITEM_NS 200e3

/* Markup, quotes, an escape of a terminal, a byte that is no UTF-8, a mark that reverses what
 * follows, a character that no document may hold, and a long word. */
#define HOSTILE                                                              \
	"</h3><script>alert(1)</script><img src='http://example.com/\"&amp;" \
	"\x01\x1b[31m\n\xff\xe2\x80\xae\xef\xbf\xbf"                         \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct shape {
	const char *spec;
	enum sweep_verdict verdict;
	struct sweep_estimate kappa;
	double own_ns, x_most_ns, slack_ns;
	const char *reason;
};

static const struct shape shapes[] = {
	{ "app.so:log <all & \"some\"> 'x'",
	  VERDICT_HIDDEN,
	  { 0.01, -0.02, 0.04 },
	  3e3,
	  20e3,
	  0,
	  "at most 0.04 of a delay is felt" },
	{ ":parse",
	  VERDICT_CRITICAL,
	  { 0.98, 0.95, 1.01 },
	  31e3,
	  20e3,
	  0,
	  "a delay is felt in full" },
	{ ":join",
	  VERDICT_SLACK,
	  { 0.01, -0.02, 0.03 },
	  50e3,
	  40e3,
	  15e3,
	  "hidden up to 15us [12us, 18us] an item, beyond that 1.02 [0.95, 1.09] of a delay is "
	  "felt" },
	{ ":half",
	  VERDICT_PARTIAL,
	  { 0.45, 0.38, 0.52 },
	  20e3,
	  30e3,
	  0,
	  "a part of a delay is felt" },
	{ ":noisy",
	  VERDICT_INCONCLUSIVE,
	  { 4.98, -119, 237 },
	  NAN,
	  20e3,
	  0,
	  "neither felt nor shown to be hidden; a kappa of 60 would have been seen" },
	{ ":invalid",
	  VERDICT_INVALID,
	  { 14.98, 14.72, 15.24 },
	  3e3,
	  10e3,
	  0,
	  "the positive control's kappa is 0.20 and not 1" },
	{ ":depends",
	  VERDICT_INCONCLUSIVE,
	  { 0.5, 0.45, 0.55 },
	  30e3,
	  20e3,
	  0,
	  "it depends on how many of its threads work side by side, which was not to be seen: "
	  "kappa is 0.06 if they take turns and 0.98 if not (--lane process, --lane thread)" },
	{ ":alone",
	  VERDICT_INCONCLUSIVE,
	  { 0.7, NAN, NAN },
	  NAN,
	  20e3,
	  0,
	  "one block shows no spread: more --time" },
	{ ":never",
	  VERDICT_NOT_CALLED,
	  { NAN, NAN, NAN },
	  NAN,
	  0,
	  0,
	  "not called while it was watched" },
	{ HOSTILE, VERDICT_CRITICAL, { 2.2, 1.9, 2.5 }, 5e3, 20e3, 0, "a delay is amplified" },
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes), DOSES = 4 };

static double felt(const struct shape *s, double kappa, double x)
{
	return s->slack_ns > 0 ? fmax(0, 1.02 * (x - s->slack_ns)) : kappa * x;
}

static void add_doses(struct sweep_target *t, const struct shape *s)
{
	bool known = isfinite(s->kappa.lo);

	t->n_doses = DOSES;
	t->dose = must_calloc(DOSES, sizeof(*t->dose));
	for (size_t d = 0; d < DOSES; d++) {
		double x = s->x_most_ns * (double)d / (DOSES - 1), y = felt(s, s->kappa.est, x);
		double lo = known ? felt(s, s->kappa.lo, x) - 300 : NAN;
		double hi = known ? felt(s, s->kappa.hi, x) + 300 : NAN;

		t->dose[d] =
			(struct sweep_dose){ .delay_ns = (uint64_t)(x / 2),
					     .x_ns = x,
					     .t_ns = { ITEM_NS + y, ITEM_NS + lo, ITEM_NS + hi },
					     .delta_ns = { y, lo, hi },
					     .hits_per_item = 2 };
	}
	t->dose[0].delta_ns = SWEEP_UNKNOWN;
}

static void add_changes(struct sweep_target *t)
{
	t->change = must_calloc((size_t)SIDE_COUNT * SIDES_COUNTERS, sizeof(*t->change));
	for (size_t i = 0; i < (size_t)SIDE_COUNT * SIDES_COUNTERS; i++)
		t->change[i] = (struct sweep_change){ .sham = NAN, .dose = NAN, .p_adjusted = NAN };
	t->change[EVIDENCE_ON_CPU] = (struct sweep_change){ .sham = 150e3,
							    .dose = 170e3,
							    .delta = { 20e3, 19e3, 21e3 },
							    .slope = { 1, 0.95, 1.05 },
							    .p_none = 1e-6,
							    .p_random = 0.0005,
							    .p_adjusted = 4e-5,
							    .significant = true };
	t->change[EVIDENCE_FUTEX] = (struct sweep_change){ .sham = 50e3,
							   .dose = 30e3,
							   .delta = { -20e3, -21e3, -19e3 },
							   .slope = { -1, -1.05, -0.95 },
							   .p_none = 1e-6,
							   .p_random = 0.0005,
							   .p_adjusted = 4e-5,
							   .significant = true };
}

static void add_gain(struct sweep_target *t, const struct shape *s)
{
	t->inclusive_ns = (struct sweep_estimate){ s->own_ns, s->own_ns * 0.97, s->own_ns * 1.04 };
	t->gain_ceiling_ns = (struct sweep_estimate){ s->own_ns * fmax(0, s->kappa.est),
						      s->own_ns * fmax(0, s->kappa.lo * 0.97),
						      s->own_ns * fmax(0, s->kappa.hi * 1.04) };
	if (isnan(s->own_ns)) {
		t->gain_ceiling_ns = SWEEP_UNKNOWN;
		snprintf(t->inclusive_reason, SWEEP_REASON, "an exit of it cannot be hooked");
		snprintf(t->gain_reason, SWEEP_REASON, "its own time is not known");
	}
}

static void fill(struct sweep_target *t, const struct shape *s, size_t n)
{
	char spec[400];

	snprintf(spec, sizeof(spec), n < SHAPES ? "%s" : "%s#%zu", s->spec, n);
	t->spec = must_strdup(spec);
	t->verdict = s->verdict;
	t->kappa = t->kappa_robust = s->kappa;
	snprintf(t->reason, SWEEP_REASON, "%s", s->reason);
	if (!s->x_most_ns)
		return;
	t->tested = true;
	t->hits = 123456;
	t->blocks = 14;
	t->t0_ns = ITEM_NS;
	t->hits_per_item = 2;
	t->dose_given = 1.002;
	t->p_random = 0.0005;
	t->p_adjusted = 0.002;
	t->mde = 0.06;
	t->lanes = 1;
	add_doses(t, s);
	add_gain(t, s);
	if (s->verdict == VERDICT_SLACK) {
		t->slack_kind = SLACK_FOUND;
		t->slack_ns = (struct sweep_estimate){ 15e3, 12e3, 18e3 };
		t->kappa_beyond = (struct sweep_estimate){ 1.02, 0.95, 1.09 };
	}
	if (strstr(s->reason, "it depends")) {
		t->lanes_unclear = true;
		t->range[0] = (struct sweep_estimate){ 0.06, 0.02, 0.1 };
		t->range[1] = (struct sweep_estimate){ 0.98, 0.9, 1.05 };
	}
	if (s->verdict == VERDICT_HIDDEN || s->verdict == VERDICT_CRITICAL)
		add_changes(t);
}

/* p99 lies in one bucket with and without the delay. */
static void add_quantiles(struct sweep_target *t)
{
	t->n_quantiles = SWEEP_QUANTILES;
	for (size_t i = 0; i < SWEEP_QUANTILES; i++) {
		struct sweep_quantile *q = &t->quantile[i];
		double at = 100e3 * (double)(i + 1);

		*q = (struct sweep_quantile){ .share = i == 0 ? 0.5 : i == 1 ? 0.9 : 0.99 };
		q->sham_ns = (struct sweep_estimate){ at, at - 2e3, at + 2e3 };
		q->dose_ns = at + 20e3;
		q->delta_ns = (struct sweep_estimate){ 20e3, 15e3, 25e3 };
		q->slope = (struct sweep_estimate){ 1.01, 0.75, 1.25 };
		q->bound_ns = at;
		q->slower = 1 - q->share;
		q->slower_delta = (struct sweep_estimate){ 0.01, 0.005, 0.015 };
	}
	t->quantile[2].delta_ns.est = t->quantile[2].slope.est = NAN;
	snprintf(t->quantile[2].reason, SWEEP_REASON,
		 "between 100us and 1ms with and without the delay: that bucket does not resolve "
		 "the change");
}

static void add_windows(struct sweep_result *res, size_t n)
{
	struct rng rng;

	rng_seed(&rng, 1);
	res->n_windows = n;
	res->window = must_calloc(n, sizeof(*res->window));
	for (size_t i = 0; i < n; i++) {
		enum sweep_arm arm = (enum sweep_arm)(i % ARM_COUNT);
		double x = arm == ARM_DOSE ? 20e3 : 0;

		res->window[i] = (struct sweep_window){
			.stage = STAGE_MAIN,
			.arm = arm,
			.end_ns = (i + 1) * 100000000ull,
			.time_ns = 100000000,
			.items = i == 50 ? 0 : 500,
			.t_ns = i == 50 ? NAN :
				i == 70 ? 40 * ITEM_NS :
					  ITEM_NS + x + 8e3 * rng_uniform(&rng),
			.x_ns = x,
			.response_sum_ns = NAN,
			.response_count = NAN,
		};
	}
}

/* With the shapes in turn, or all of one. */
static struct sweep_result *sample(size_t n, const struct shape *only)
{
	struct sweep_result *res = sweep_result_new(n);

	res->seed = 42;
	res->threshold = 0.1;
	res->time_s = 59.7;
	res->n_counters = SIDES_COUNTERS;
	res->gates.aa = (struct sweep_estimate){ 0.0055, -0.0123, 0.0232 };
	res->n_adjust = 2;
	res->adjust_explained = 0.734;
	res->adjust[0] = (struct sweep_adjust){ .used = true,
						.mean = 12.5,
						.slope = { 1200, 1100, 1300 },
						.moved_share = NAN,
						.moved_p = NAN };
	res->adjust[1] = (struct sweep_adjust){ .mean = 3,
						.slope = SWEEP_UNKNOWN,
						.moved = true,
						.moved_target = -1,
						.moved_share = -0.21,
						.moved_p = 0.0003,
						.reason = "a delay changes it" };
	res->gates.aa_known = true;
	res->gates.aa_p = 0.5;
	res->gates.sham_ns = (struct sweep_estimate){ -30.2, -220, 160 };
	res->gates.carry_t = 0.31;
	res->gates.lanes = 1;
	res->gates.roles = 1;
	res->gates.lane_mode = "auto";
	res->gates.load = LOAD_CLOSED;
	snprintf(res->gates.load_reason, SWEEP_REASON, "a thread was always busy");
	for (size_t i = 0; i < n; i++)
		fill(&res->target[i], only ? only : &shapes[i % SHAPES], i);
	add_windows(res, n ? 300 : 0);
	return res;
}

/* No figure is finite: what comes from a sweep that went wrong. */
static struct sweep_result *endless(void)
{
	struct sweep_result *res = sample(2, &shapes[1]);
	struct sweep_estimate all = { INFINITY, -INFINITY, INFINITY };

	res->target[0].kappa = res->target[0].inclusive_ns = all;
	res->target[0].gain_ceiling_ns = res->gates.aa = res->gates.sham_ns = all;
	for (size_t d = 0; d < DOSES; d++) {
		res->target[0].dose[d].delta_ns = (struct sweep_estimate){ NAN, NAN, NAN };
		res->target[1].dose[d].delta_ns = all;
		res->target[1].dose[d].x_ns = INFINITY;
	}
	res->target[0].t0_ns = res->target[1].t0_ns = 0;
	res->gates.carry_t = res->gates.lanes = res->time_s = NAN;
	for (size_t i = 0; i < res->n_windows; i++)
		res->window[i].t_ns = i % 2 ? INFINITY : NAN;
	return res;
}

static void write_page(const char *name, struct sweep_result *res)
{
	char *argv[] = { "sweep", ":parse", "--progress", "prom:http://127.0.0.1:9/<x>#y",
			 HOSTILE };
	struct sides_about sides = { .read = true, .asked = true, .bpf = true };
	struct out_sweep_about about = {
		.argc = 5,
		.argv = argv,
		.progress = argv[3],
		.adjust = { argv[3], HOSTILE },
		.n_targets = res->n_targets,
		.sides = &sides,
		.ended = 1764087527,
		.busy = 0.431,
		.steal = 0.0021,
	};
	const char *dir = getenv("SB_PAGES");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.html", dir ? dir : "/tmp", name);
	if (!dir) {
		snprintf(path, sizeof(path), "/dev/null");
		assert_int_equal(out_sweep_html(path, res, &about, NULL), 0);
	} else {
		assert_int_equal(out_sweep_html(path, res, &about, NULL), 0);
		snprintf(path, sizeof(path), "%s/%s.json", dir, name);
		assert_int_equal(out_sweep_json(path, res, &about, NULL), 0);
	}
	sweep_result_free(res);
}

static void test_pages(void **state)
{
	struct sweep_result *res = sample(SHAPES, NULL);

	(void)state;
	write_page("all", res);
	write_page("none", sample(0, NULL));
	write_page("one", sample(1, &shapes[1]));
	write_page("thirty", sample(30, NULL));
	write_page("alone", sample(1, &shapes[7]));
	write_page("never", sample(2, &shapes[8]));
	write_page("endless", endless());
	res = sample(2, NULL);
	add_quantiles(&res->target[0]);
	add_quantiles(&res->target[1]);
	write_page("quantiles", res);
	res = sample(2, NULL);
	res->gates.unproven = true;
	res->gates.carry_over = true;
	res->gates.carry_t = 5.2;
	sweep_result_warn(res, "A and A differed by %.2g %%: nothing here is proven", 3.0);
	write_page("unproven", res);
}

/* ---- the headline ---- */

static void headline(struct sweep_result *res, const char *const *want)
{
	struct out_sweep_about about = { .n_targets = res->n_targets };
	struct out_headline h;

	out_sweep_headline(res, &about, &h);
	for (size_t i = 0; i < h.n; i++)
		assert_string_equal(h.line[i], want[i] ? want[i] : "no more");
	assert_null(want[h.n]);
	out_headline_free(&h);
	sweep_result_free(res);
}
#define HEADLINE(res, ...) headline(res, (const char *const[]){ __VA_ARGS__, NULL })

static void test_each_verdict_has_its_sentence(void **state)
{
	(void)state;
	HEADLINE(sample(9, NULL), ":parse limits the program: time spent there is felt in full.",
		 ":half limits the program in part: a part of the time spent there is felt.",
		 "Making :parse free would save at most 30.4us of 200us an item (15 %).",
		 "Making :half free would save at most 9.00us of 200us an item (4.5 %).",
		 ":join does not matter as it is: more time there is hidden at first, and felt "
		 "beyond a slack.",
		 "app.so:log <all & \"some\"> 'x' does not matter: more time there is hidden.",
		 ":never was not called.",
		 ":noisy, :invalid, :depends and :alone are not known to matter or not.");
}

/* An interval that reaches 1 shows that a delay is felt, and not that it is felt in part only. */
static void test_what_may_be_felt_in_full_is_not_called_a_part(void **state)
{
	struct sweep_result *res = sample(1, &shapes[3]);

	(void)state;
	res->target[0].kappa = (struct sweep_estimate){ 1.3, 0.6, 2 };
	HEADLINE(res, ":half limits the program, in part or in full: time spent there is felt.",
		 "Making :half free would save at most 9.00us of 200us an item (4.5 %).");
}

static void test_many_names_are_counted(void **state)
{
	struct sweep_result *res = sample(30, &shapes[0]);

	(void)state;
	for (size_t i = 0; i < 30; i++)
		snprintf(res->target[i].spec, 8, ":f%zu", i);
	HEADLINE(res, "What limits the program is something else than what was swept.",
		 ":f0, :f1, :f2 and 27 more do not matter: more time there is hidden.");
}

/* The headline claims only what is proven: nothing of no targets, of noise, or where A and A
 * differed. */
static void test_what_is_not_known_is_said(void **state)
{
	struct sweep_result *res = sample(2, NULL);

	(void)state;
	HEADLINE(sample(0, NULL), "What limits the program is not known.");
	HEADLINE(sample(1, &shapes[4]), "What limits the program is not known.",
		 ":noisy is not known to matter or not.");
	HEADLINE(sample(1, &shapes[8]), "What limits the program is not known.",
		 ":never was not called.");
	res->gates.unproven = true;
	HEADLINE(res, "What limits the program is not known: windows that were alike differed, so "
		      "that this sweep proves nothing.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_each_verdict_has_its_sentence),
		cmocka_unit_test(test_what_may_be_felt_in_full_is_not_called_a_part),
		cmocka_unit_test(test_many_names_are_counted),
		cmocka_unit_test(test_what_is_not_known_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
