/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "sweep/drive.h"
#include "sweep/queue.h"
#include "sweep/rng.h"

/*
 * A server with one thread, request by request: requests come at random, or as soon as one of a few
 * clients has its answer and has thought about it. A delay is part of the service.
 */
#define SERVICE 1e6 /* ns */
#define CLIENTS 64
#define FAST	250e3
#define SLOW	1500e3
#define STEPS	64 /* buckets of each power of two, from 2^16 ns on */
#define BUCKETS (16 * STEPS)

struct model {
	double utilisation;
	bool fixed;   /* M/D/1; else M/M/1 */
	bool unknown; /* the threads' time on a processor is not known */
	int clients;  /* > 0: a closed loop, that think for think_ns */
	double think_ns;
	double slow;	 /* > 0: that share of requests takes SLOW and has the delay; else FAST */
	double quantile; /* that is judged */
	double time_s;
	const uint64_t *dose_ns;
	size_t n_doses;
};

struct server {
	const struct model *m;
	struct rng rng;
	double now, free; /* ns; the thread is busy until then */
	double next;	  /* arrival; of each client, if there are */
	double client[CLIENTS];
	double *end, *w; /* of requests that are in the system, by order: ring */
	size_t from, to, room;
	double delay, busy, sum, count, injected, hits;
	double bucket[BUCKETS];
};

static double exponential(struct rng *rng, double mean)
{
	return -mean * log(1 - rng_uniform(rng));
}

static int first_client(const struct server *s)
{
	int first = 0;

	for (int i = 1; i < s->m->clients; i++)
		if (s->client[i] < s->client[first])
			first = i;
	return first;
}

static void push(struct server *s, double end, double w)
{
	if (s->to == s->room) {
		memmove(s->end, s->end + s->from, (s->to - s->from) * sizeof(*s->end));
		memmove(s->w, s->w + s->from, (s->to - s->from) * sizeof(*s->w));
		s->to -= s->from;
		s->from = 0;
	}
	if (s->to == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->end = realloc(s->end, s->room * sizeof(*s->end));
		s->w = realloc(s->w, s->room * sizeof(*s->w));
	}
	s->end[s->to] = end;
	s->w[s->to++] = w;
}

/* The next request arrives, and its end is known at once: first come, first served. */
static void arrive(struct server *s, double at)
{
	double service = s->m->fixed ? SERVICE : exponential(&s->rng, SERVICE), start;
	double delay = s->delay;

	if (s->m->slow > 0) {
		bool slow = rng_uniform(&s->rng) < s->m->slow;

		service = (slow ? SLOW : FAST) * exp(0.1 * rng_normal(&s->rng));
		delay = slow ? delay : 0;
		s->hits += slow;
	} else {
		s->hits++;
	}
	start = fmax(at, s->free);
	s->free = start + service + delay;
	s->busy += service + delay;
	s->injected += delay;
	push(s, s->free, s->free - at);
}

static void run(struct server *s, double ns)
{
	double until = s->now + ns;

	for (;;) {
		int c = s->m->clients ? first_client(s) : 0;
		double at = s->m->clients ? s->client[c] : s->next;

		if (at > until)
			break;
		arrive(s, at);
		if (s->m->clients)
			s->client[c] = s->free + exponential(&s->rng, s->m->think_ns);
		else
			s->next += exponential(&s->rng, SERVICE / s->m->utilisation);
	}
	s->now = until;
	for (; s->from < s->to && s->end[s->from] <= until; s->from++) {
		s->sum += s->w[s->from];
		s->count++;
		s->bucket[(size_t)fmin(BUCKETS - 1, fmax(0, (log2(s->w[s->from]) - 16) * STEPS))]++;
	}
}

static size_t buckets(const struct server *s, const struct server *before, struct sweep_bucket *out)
{
	size_t n = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		if (s->bucket[i] > before->bucket[i])
			out[n++] = (struct sweep_bucket){ exp2(16 + (double)i / STEPS),
							  exp2(16 + (double)(i + 1) / STEPS),
							  s->bucket[i] - before->bucket[i] };
	return n;
}

static void window(struct server *s, const struct drive_step *step, struct drive *drive)
{
	struct lane_count lane = { 0 };
	uint64_t hits;
	struct drive_window win = { .lane = &lane, .n_lanes = 1, .hits = &hits, .busy = NAN };
	static struct sweep_bucket bucket[BUCKETS];
	struct server before = *s, a;

	s->delay = step->hooked && step->delay_ns ? (double)step->delay_ns[0] : 0;
	run(s, (double)step->guard_ns + 1e6);
	a = *s;
	run(s, (double)step->window_ns);
	win.now_ns = (uint64_t)s->now;
	win.time_ns = step->window_ns;
	win.items = win.response_count = s->count - a.count;
	win.response_sum_ns = s->sum - a.sum;
	win.since = s->count - before.count;
	win.busy = s->m->unknown ? NAN : fmin(1, (s->busy - a.busy) / (double)step->window_ns);
	win.bucket = bucket;
	win.n_buckets = buckets(s, &a, bucket);
	lane.hits = hits = (uint64_t)(s->hits - a.hits);
	lane.injected_ns = (uint64_t)(s->injected - a.injected);
	assert_int_equal(drive_take(drive, &win, NULL), 0);
}

static struct sweep_result *sweep(const struct model *m, uint64_t seed)
{
	static const char *const spec[] = { "serve" };
	struct drive_cfg cfg = drive_defaults();
	struct server s = { .m = m };
	struct sweep_result *res;
	struct drive_step step;
	struct drive *drive;

	rng_seed(&s.rng, seed * 7919 + 1);
	s.next = exponential(&s.rng, SERVICE);
	cfg.seed = seed;
	cfg.spec = spec;
	cfg.n_targets = 1;
	cfg.response = true;
	cfg.floor_ns = 40;
	cfg.quantile = m->quantile;
	cfg.dose_ns = m->dose_ns;
	cfg.n_doses = m->n_doses;
	cfg.time_ns = (uint64_t)(m->time_s * 1e9);
	assert_int_equal(drive_open(&cfg, &drive, NULL), 0);
	drive_lane(drive, "server", 1, 1);
	for (;;) {
		drive_next(drive, &step);
		if (step.what == DRIVE_DONE)
			break;
		window(&s, &step, drive);
	}
	res = drive_end(drive);
	drive_close(drive);
	free(s.end);
	free(s.w);
	return res;
}

struct tally {
	int saturated, sure, inconclusive, held;
	double kappa, util, little;
};

static struct tally cover(const char *name, const struct model *m, double truth, int runs)
{
	struct tally t = { 0 };

	for (int i = 0; i < runs; i++) {
		struct sweep_result *res = sweep(m, (uint64_t)i + 1);
		const struct sweep_target *target = &res->target[0];

		t.saturated += target->verdict == VERDICT_INVALID;
		t.inconclusive += target->verdict == VERDICT_INCONCLUSIVE;
		t.held += target->kappa.lo <= truth && truth <= target->kappa.hi;
		t.kappa += isfinite(target->kappa.est) ? target->kappa.est / runs : 0;
		t.util += target->queue.utilisation / runs;
		t.little += target->queue.in_system / runs;
		if (i < 2)
			print_message("  %s %.2f [%.2f, %.2f] %s; %s\n",
				      sweep_verdict_name(target->verdict), target->kappa.est,
				      target->kappa.lo, target->kappa.hi, target->reason,
				      target->queue.reason);
		sweep_result_free(res);
	}
	t.sure = runs - t.saturated - t.inconclusive;
	print_message("%-28s saturated %3d, a number %3d, inconclusive %3d of %d; kappa %.2f of "
		      "%.2f, held %d; utilisation %.2f, in the system %.2f\n",
		      name, t.saturated, t.sure, t.inconclusive, runs, t.kappa, truth, t.held,
		      t.util, t.little);
	return t;
}

static const uint64_t large[] = { 430000 };

/* Runs of each, 20 s: the same figures for M/M/1 and M/D/1. */
#define RUNS 30

static struct tally of_queue(double utilisation, bool fixed, bool unknown, double truth)
{
	struct model m = {
		.utilisation = utilisation, .fixed = fixed, .unknown = unknown, .time_s = 20
	};
	char name[64];

	snprintf(name, sizeof(name), "M/%s/1 at %.0f %%%s", fixed ? "D" : "M", 100 * utilisation,
		 unknown ? ", unknown" : "");
	return cover(name, &m, truth, RUNS);
}

static void test_below_saturation_there_is_a_number(void **state)
{
	struct tally t;

	(void)state;
	t = of_queue(0.3, false, false, 1 / 0.7 / 0.7);
	assert_true(t.saturated == 0 && t.sure > RUNS / 2 && t.held >= RUNS * 9 / 10);
	assert_true(fabs(t.util - 0.3) < 0.03 && fabs(t.little - 0.3 / 0.7) < 0.05);
	t = of_queue(0.3, true, false, 1 + 0.3 * 1.7 / 2 / 0.49);
	assert_true(t.saturated == 0 && t.sure > RUNS * 9 / 10 && t.held >= RUNS * 9 / 10);
	assert_true(fabs(t.little - (0.3 + 0.09 / 1.4)) < 0.03);
	t = of_queue(0.7, false, false, 1 / 0.3 / 0.3);
	assert_true(t.saturated <= RUNS / 15 && t.held >= RUNS * 9 / 10);
	t = of_queue(0.7, true, false, 1 + 0.7 * 1.3 / 2 / 0.09);
	assert_true(t.saturated <= RUNS / 15 && t.held >= RUNS * 9 / 10);
	t = of_queue(0.6, true, true, 1 + 0.6 * 1.4 / 2 / 0.16);
	assert_true(t.saturated <= RUNS / 15 && t.held >= RUNS * 9 / 10);
	t = of_queue(0.3, true, true, 1 + 0.3 * 1.7 / 2 / 0.49);
	assert_true(t.saturated == 0 && t.sure > RUNS * 9 / 10 && t.held >= RUNS * 9 / 10);
	/* a dose of three services is a small one where the server is idle */
	t = of_queue(0.1, true, true, 1 + 0.1 * 1.9 / 2 / 0.81);
	assert_true(t.saturated == 0 && t.sure > RUNS * 9 / 10 && t.held >= RUNS * 8 / 10);
}

/* Whether or not it is known how busy the server is. */
static void test_at_saturation_there_is_a_word(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tally t = of_queue(1.05, i % 2, i / 2, NAN);

		assert_int_equal(t.saturated, RUNS);
		t = of_queue(0.95, i % 2, i / 2, NAN);
		assert_true(t.sure <= RUNS / 10);
	}
}

/* 70 % and doses of 43 % of the service: at the largest, requests come as fast as they are served.
 */
static void test_a_dose_that_saturates_is_no_slope(void **state)
{
	struct model m = { .utilisation = 0.7, .time_s = 20, .dose_ns = large, .n_doses = 1 };
	struct tally t;

	(void)state;
	for (int i = 0; i < 4; i++) {
		m.fixed = i % 2;
		m.unknown = i / 2;
		t = cover("43 % of the service, at 70 %", &m, NAN, RUNS);
		assert_true(m.unknown || t.saturated == RUNS);
	}
}

static void test_a_closed_loop_is_not_saturated(void **state)
{
	struct model m = { .clients = 8, .think_ns = 10e6, .time_s = 20 };
	struct tally t;

	(void)state;
	for (int i = 0; i < 2; i++) {
		m.unknown = i;
		t = cover("8 clients that think", &m, NAN, RUNS);
		assert_true(t.saturated <= RUNS / 15);
	}
	m.think_ns = 1e5;
	t = cover("8 clients", &m, 8, RUNS);
	assert_true(t.saturated == 0 && t.held >= RUNS * 8 / 10);
}

/* Completions a second as they are in blocks of SHAM and a dose, in random order, by pairs. */
static struct queue_flow flow_of(double under, double after, uint64_t seed)
{
	struct record rec = { .response = true };
	struct queue_flow flow;
	uint64_t end_ns = 0;
	bool dose = false;
	struct rng rng;

	rng_seed(&rng, seed);
	for (int i = 0; i < 12 * 4; i++) {
		bool before = dose;
		struct lane_count lane = { .gone = 0 };
		struct record_row row = { .lane = &lane, .n_lanes = 1 };

		dose = i % 2 ? !dose : rng_uniform(&rng) < 0.5;
		end_ns += 200000000;
		lane.injected_ns = dose ? 60000000 : 0;
		row.column = dose ? COLUMN_DOSE : COLUMN_SHAM;
		row.since = 200 * (dose ? under : before ? after : 1) + 5 * rng_normal(&rng);
		row.win = (struct sweep_window){ .arm = dose ? ARM_DOSE : ARM_SHAM,
						 .block = i / 4,
						 .end_ns = end_ns,
						 .time_ns = 200000000 };
		record_add(&rec, &row);
	}
	flow = queue_flow(&rec, 0);
	record_free(&rec);
	return flow;
}

/* What is not completed comes later where requests have a rate of their own, and else never. */
static void test_what_is_worked_off_later_was_a_queue(void **state)
{
	int open = 0, closed = 0, faster = 0, steady = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		open += flow_of(0.85, 1.15, seed).saturated;
		closed += flow_of(0.85, 1, seed).saturated;
		/* A loop that is a little faster after a delay, as beside other programs. */
		faster += flow_of(0.78, 1.05, seed).saturated;
		steady += flow_of(1, 1, seed).saturated;
	}
	print_message("open %d, closed %d, faster after %d, steady %d of 100\n", open, closed,
		      faster, steady);
	assert_true(open >= 95);
	assert_int_equal(closed, 0);
	assert_int_equal(faster, 0);
	assert_int_equal(steady, 0);
}

/* One request of 20 is delayed: p99 has all of it, and p50 nothing. */
static void test_the_verdict_is_of_the_quantile_that_was_asked(void **state)
{
	const struct {
		double quantile, truth;
		enum sweep_verdict verdict;
	} of[] = { { 0, 1, VERDICT_CRITICAL },
		   { 0.5, 0, VERDICT_HIDDEN },
		   { 0.99, 20, VERDICT_CRITICAL } };

	(void)state;
	for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
		int right = 0, wrong = 0, held = 0;

		for (int i = 0; i < RUNS; i++) {
			struct model m = { .clients = 1, .slow = 0.05, .time_s = 20 };
			const struct sweep_target *t;
			struct sweep_result *res;

			m.quantile = of[k].quantile;
			res = sweep(&m, (uint64_t)i + 1);
			t = &res->target[0];
			right += t->verdict == of[k].verdict;
			wrong += t->verdict != of[k].verdict && t->verdict != VERDICT_INCONCLUSIVE;
			held += t->kappa.lo <= of[k].truth && of[k].truth <= t->kappa.hi;
			assert_true(!t->judged == !of[k].quantile);
			if (t->judged && isfinite(t->kappa.est))
				assert_true(fabs(t->kappa.est - t->judged->slope.est) <
					    0.5 + 0.2 * fabs(t->kappa.est));
			sweep_result_free(res);
		}
		print_message("quantile %.2f: right %d, wrong %d of %d, held %d\n", of[k].quantile,
			      right, wrong, RUNS, held);
		assert_true(wrong == 0 && right >= RUNS * 3 / 4 && held >= RUNS * 8 / 10);
	}
}

/* An hour of windows: neither memory nor time for each pair of them. */
static void test_growth_is_seen_over_many_windows(void **state)
{
	const size_t n = 40000;
	struct record rec = { .response = true };
	struct rlimit was, limit;
	struct queue_growth growth;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct record_row row = { .column = COLUMN_SHAM,
					  .length = 1,
					  .win = { .arm = ARM_SHAM,
						   .end_ns = (i + 1) * 100000000,
						   .response_count = 100,
						   .response_sum_ns = 1e8 + 1e5 * (double)i } };

		record_add(&rec, &row);
	}
	assert_int_equal(getrlimit(RLIMIT_DATA, &was), 0);
	limit = (struct rlimit){ 256 << 20, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	growth = queue_growth(&rec);
	setrlimit(RLIMIT_DATA, &was);
	assert_true(growth.slope > 0.9e-5 && growth.slope < 1.1e-5);
	assert_true(growth.ratio > 1.5 && growth.p < 1e-3);
	record_free(&rec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_saturation_there_is_a_number),
		cmocka_unit_test(test_at_saturation_there_is_a_word),
		cmocka_unit_test(test_growth_is_seen_over_many_windows),
		cmocka_unit_test(test_a_dose_that_saturates_is_no_slope),
		cmocka_unit_test(test_what_is_worked_off_later_was_a_queue),
		cmocka_unit_test(test_a_closed_loop_is_not_saturated),
		cmocka_unit_test(test_the_verdict_is_of_the_quantile_that_was_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
