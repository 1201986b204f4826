/* SPDX-License-Identifier: MIT */
/* Is the delay given the delay asked for; are threads delayed in parallel; are hits exact. */
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

static const struct dose {
	const char *text;
	double ns;
} doses[] = {
	{ "20ns", 20 },	  { "30ns", 30 },     { "40ns", 40 }, { "50ns", 50 },	{ "100ns", 100 },
	{ "200ns", 200 }, { "500ns", 500 },   { "1us", 1e3 }, { "2us", 2e3 },	{ "5us", 5e3 },
	{ "10us", 10e3 }, { "100us", 100e3 }, { "1ms", 1e6 }, { "10ms", 10e6 },
};
enum { DOSES = sizeof(doses) / sizeof(doses[0]) };

static uint64_t calls_for(double ns)
{
	double calls = (bench.quick ? 20e6 : 80e6) / (ns + 20);

	return calls < 25 ? 25 : (uint64_t)calls;
}

/*
 * What the machine takes from a call of this length: interruptions are no error of the delay, and
 * some hosts have thousands of them a second. Seen in a loop of the subject's own.
 */
static double taken_of(struct subject *s, const struct dose *d)
{
	double answer[2];

	if (subject_ask(s, answer, 2, "spin %.0f %llu", d->ns,
			(unsigned long long)calls_for(d->ns)) != 2)
		return NAN;
	return answer[0] - answer[1];
}

/* The mean added cost of a call less what was asked for, and less what the machine takes. */
static double error_of(struct subject *s, const struct dose *d, int threads)
{
	const char *words[] = { ":bench_fn", d->text, NULL };
	struct attached a;
	double base, hooked;

	base = subject_call(s, threads, 2000000);
	if (sb_attach(&a, s, words))
		return NAN;
	hooked = subject_call(s, threads, calls_for(d->ns));
	if (sb_detach(&a))
		return NAN;
	return hooked - base - d->ns - taken_of(s, d);
}

static void report(int threads, struct samples *error)
{
	double smallest = NAN;

	for (int d = DOSES - 1; d >= 0; d--) {
		double e = samples_median(&error[d]),
		       limit = doses[d].ns < 1e3 ? 10 : doses[d].ns / 100;
		bool good = fabs(e) <= limit;
		char what[80], unit[8] = "ns";

		if (good && (isnan(smallest) || smallest == doses[d + 1].ns))
			smallest = doses[d].ns;
		snprintf(what, sizeof(what), "error of the mean delay, %s asked, %d thread%s",
			 doses[d].text, threads, threads > 1 ? "s" : "");
		if (doses[d].ns < 50 || isnan(e))
			continue; /* below: only whether it is honest */
		row_add("delay", what, e, unit, doses[d].ns < 1e3 ? "within 10 ns" : "within 1 %",
			good);
	}
	if (threads > 1)
		return;
	if (isnan(smallest))
		row_missing("delay", "smallest honest delay", "<= 40 ns", "none was honest");
	else
		row_add("delay", "smallest honest delay (error within 10 ns)", smallest, "ns",
			"<= 40 ns", met_below(smallest, 40));
}

static void accuracy(int threads)
{
	struct samples error[DOSES] = { 0 };
	struct subject s = { 0 };

	if (subject_start(&s, "subject", NULL, NULL))
		return;
	for (int i = 0; i < bench.rounds; i++)
		for (int d = 0; d < DOSES; d++)
			if (threads == 1 || (doses[d].ns >= 50 && doses[d].ns <= 1e5))
				samples_add(&error[d], error_of(&s, &doses[d], threads));
	subject_stop(&s);
	report(threads, error);
}

/*
 * As error_of(), with the function's twin timed in turn: what the machine takes from both, or how
 * fast it is at the moment, is no error of the delay.
 */
static double error_beside_twin(struct subject *s, const struct dose *d)
{
	const char *words[] = { ":bench_fn", d->text, NULL };
	struct attached a;
	double more;
	int got;

	if (sb_attach(&a, s, words))
		return NAN;
	got = subject_ask(s, &more, 1, "pair %llu", (unsigned long long)calls_for(d->ns));
	if (sb_detach(&a) || got != 1)
		return NAN;
	return more - d->ns;
}

/* One session is what a user has: the worst of many, each of which measures the hook anew. */
static void worst_session(const struct dose *d)
{
	double worst = 0, limit = d->ns < 1e3 ? 5 : d->ns / 100;
	int sessions = bench.quick ? 3 : 50;
	struct subject s = { 0 };
	char what[80];

	for (int i = 0; i < sessions; i++) {
		double e;

		if (subject_start(&s, "subject", NULL, NULL))
			return;
		e = error_beside_twin(&s, d);
		subject_stop(&s);
		if (isnan(e) || fabs(e) > fabs(worst))
			worst = e;
		if (isnan(e))
			break;
	}
	snprintf(what, sizeof(what), "error of the worst of %d sessions, %s asked", sessions,
		 d->text);
	row_add("session", what, worst, "ns", d->ns < 1e3 ? "within 5 ns" : "within 1 %",
		fabs(worst) <= limit);
}

void bench_session(void)
{
	if (!sb_runs()) {
		row_missing("session", "everything", NULL, "no %s/sbinject", bench.build);
		return;
	}
	for (int d = 0; d < DOSES; d++)
		if (doses[d].ns == 50 || doses[d].ns == 100 || doses[d].ns == 200 ||
		    doses[d].ns == 1e3)
			worst_session(&doses[d]);
}

/*
 * Elapsed time of one thread's N calls over that of as many threads as there are processors: the
 * best of short runs, since any other program that wants a processor meanwhile shows as well.
 */
static double best_share(struct subject *s, int threads)
{
	double one[3], all[3], least_one = NAN, least_all = NAN;

	for (int i = 0; i < 15; i++) {
		if (subject_ask(s, one, 3, "call 1 2000") != 3 ||
		    subject_ask(s, all, 3, "call %d 2000", threads) != 3)
			return NAN;
		least_one = fmin(least_one, one[2]);
		least_all = fmin(least_all, all[2]);
	}
	return least_one / least_all * 100;
}

static void parallelism(int threads)
{
	static const char *const words[] = { ":bench_fn", "5us", NULL };
	struct samples share = { 0 };
	struct subject s = { 0 };
	char what[80];

	if (subject_start(&s, "subject", NULL, NULL))
		return;
	for (int i = 0; i < bench.rounds; i++) {
		struct attached a;

		if (sb_attach(&a, &s, words))
			continue;
		samples_add(&share, best_share(&s, threads));
		sb_detach(&a);
	}
	subject_stop(&s);
	snprintf(what, sizeof(what), "%d threads of 5 us each, in parallel, of the ideal", threads);
	row_add("delay", what, samples_median(&share), "%", ">= 98 %",
		samples_median(&share) >= 98);
}

static void exactness(void)
{
	static const char *const words[] = { ":bench_fn", "0", NULL };
	uint64_t calls = bench.quick ? 5000000 : 50000000;
	struct subject s = { 0 };
	struct attached a;
	double answer[3], hits = NAN;
	char what[80];

	snprintf(what, sizeof(what), "hits missed of %.0e calls on 2 threads", (double)calls * 2);
	if (subject_start(&s, "subject", NULL, NULL))
		return;
	if (sb_attach(&a, &s, words)) {
		row_missing("delay", what, "0", "%s", sb_why(&a));
	} else {
		int got = subject_ask(&s, answer, 3, "call 2 %llu", (unsigned long long)calls);

		if (sb_detach(&a) == 0 && got == 3)
			hits = sb_json(&a, "targets.0.hits");
		row_add("delay", what, (double)calls * 2 - hits, "", "0",
			hits == (double)calls * 2);
	}
	subject_stop(&s);
}

void bench_delay(void)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

	if (!sb_runs()) {
		row_missing("delay", "everything", NULL, "no %s/sbinject", bench.build);
		return;
	}
	accuracy(1);
	if (cpus > 1) {
		accuracy(cpus < 8 ? cpus : 8);
		parallelism(cpus < 8 ? cpus : 8);
	} else {
		row_missing("delay", "threads delayed in parallel", ">= 98 %", "one processor");
	}
	exactness();
}
