/* SPDX-License-Identifier: MIT */
/* The uprobe backend beside inject, in turns: what a hit costs, and what a delay comes out as. */
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

static const struct dose {
	const char *text;
	double ns;
	uint64_t calls;
} doses[] = {
	{ "0", 0, 20000 },	  { "20us", 20e3, 4000 }, { "50us", 50e3, 2000 },
	{ "100us", 100e3, 1000 }, { "1ms", 1e6, 625 },
};
enum { DOSES = sizeof(doses) / sizeof(doses[0]), BACKENDS = 2, RUNS = 25 };

static const char *const backends[BACKENDS] = { "inject", "uprobe" };

/* The best of short runs: another program on the processor is no cost of a hit. */
static double least_call(struct subject *s, uint64_t calls)
{
	double least = NAN;

	for (int i = 0; i < RUNS; i++)
		least = fmin(least, subject_call(s, 1, calls / RUNS));
	return least;
}

/* The mean added cost of a call. */
static double cost_of(struct subject *s, const char *backend, const struct dose *d)
{
	const char *words[] = { ":bench_fn", d->text, "--backend", backend, NULL };
	bool uprobe = !strcmp(backend, "uprobe");
	struct attached a;
	double base, hooked;

	base = least_call(s, 2000000);
	if (sb_attach(&a, s, words))
		return NAN;
	/* The breakpoint is in before the window opens. */
	usleep(uprobe ? 300000 : 0);
	hooked = least_call(s, uprobe || d->ns ? d->calls : 2000000);
	if (sb_detach(&a) || sb_json(&a, "targets.0.hits") < (double)d->calls)
		return NAN;
	return hooked - base;
}

static void report(const char *backend, const struct dose *d, const struct samples *cost)
{
	double value = samples_median(cost) - d->ns;
	char what[80];

	if (!d->ns)
		snprintf(what, sizeof(what), "a counted hit, %s", backend);
	else
		snprintf(what, sizeof(what), "error of the mean delay, %s asked, %s", d->text,
			 backend);
	if (isnan(value))
		row_missing("backend", what, NULL, "no attach, or hits are missing");
	else if (!d->ns)
		row_add("backend", what, value, "ns", NULL, -1);
	else
		row_add("backend", what, value, "ns", "within 2 %", fabs(value) <= d->ns / 50);
}

void bench_backend(void)
{
	struct samples cost[BACKENDS][DOSES] = { 0 };
	struct subject s = { 0 };

	if (!sb_runs() || subject_start(&s, "subject", NULL, NULL))
		return;
	for (int i = 0; i < bench.rounds; i++)
		for (int d = 0; d < DOSES; d++)
			for (int b = 0; b < BACKENDS; b++)
				samples_add(&cost[b][d], cost_of(&s, backends[b], &doses[d]));
	subject_stop(&s);
	for (int d = 0; d < DOSES; d++)
		for (int b = 0; b < BACKENDS; b++)
			report(backends[b], &doses[d], &cost[b][d]);
}
