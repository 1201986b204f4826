/* SPDX-License-Identifier: MIT */
/* Does a sweep tell the truth? Simulated programs with known answers, many times each, through the
 * machine that live sweeps use; how often 95 % intervals hold the truth, and the verdict is right.
 */
#include <stdlib.h>

#include "bench.h"
#include "../unit/sweep-sim.h"

struct known {
	const char *name;
	double kappa; /* at no delay: what the verdict is about */
	enum sweep_verdict verdict;
	double slope, slack_ns; /* beyond the slack; 0: kappa */
	double drift, ar_sd;	/* 0: 3 % and 1 % */
	double period_s, arrivals_per_s, seconds;
	int lanes;
	double mix; /* of the items' size, share of T0 */
	bool batcher, pipeline, adjusted;
	size_t stage; /* of the pipeline: the target's */
};

/* Drift is linear over the sweep; noise AR(1), as shares of the time per item. */
static const struct known victims[] = {
	{ "serial", .kappa = 1, .verdict = VERDICT_CRITICAL },
	{ "serial, noisy", .kappa = 1, .verdict = VERDICT_CRITICAL, .ar_sd = 0.05 },
	{ "serial, 5 s", .kappa = 1, .verdict = VERDICT_CRITICAL, .seconds = 5 },
	{ "drift of 20 %", .kappa = 1, .verdict = VERDICT_CRITICAL, .drift = 0.2 },
	{ "hidden", .kappa = 0, .verdict = VERDICT_HIDDEN },
	{ "slack of 15 %", .kappa = 0, .verdict = VERDICT_SLACK, .slope = 1, .slack_ns = 15e3 },
	{ "partial, 0.4", .kappa = 0.4, .verdict = VERDICT_PARTIAL },
	{ "convoy, 1.8", .kappa = 1.8, .verdict = VERDICT_CRITICAL },
	{ "4 ranks", .kappa = 1, .verdict = VERDICT_CRITICAL, .lanes = 4 },
	{ "pipeline, before it", .kappa = 0, .verdict = VERDICT_HIDDEN, .pipeline = true,
	  .stage = 0 },
	{ "pipeline, bottleneck", .kappa = 1, .verdict = VERDICT_CRITICAL, .pipeline = true,
	  .stage = 1 },
	{ "pipeline, after it", .kappa = 0, .verdict = VERDICT_SLACK, .slack_ns = 15e3,
	  .pipeline = true, .stage = 2 },
	{ "adaptive batcher", .kappa = SIM_BATCHER_KAPPA, .verdict = VERDICT_CRITICAL,
	  .batcher = true },
	{ "items of +-10 %", .kappa = 1, .verdict = VERDICT_CRITICAL, .mix = 0.1 },
	{ "items of +-10 %, adjusted", .kappa = 1, .verdict = VERDICT_CRITICAL, .mix = 0.1,
	  .adjusted = true },
	{ "published at 10 Hz", .kappa = 1, .verdict = VERDICT_CRITICAL, .period_s = 0.1 },
	{ "published each second", .kappa = 1, .verdict = VERDICT_CRITICAL, .period_s = 1,
	  .seconds = 120 },
	{ "open, saturated", .kappa = 1, .verdict = VERDICT_CRITICAL, .arrivals_per_s = 12000 },
	{ "open, below", .kappa = 0, .verdict = VERDICT_INVALID, .slope = 1,
	  .arrivals_per_s = 6000 },
	{ "never called", .kappa = NAN, .verdict = VERDICT_NOT_CALLED },
};

struct found {
	double runs, held, right, critical, slack_found, slack_near, slack_held, longest;
};

#define TIME_RUNS 50

static double seconds_of(const struct known *k)
{
	return k->seconds > 0 ? k->seconds : 60;
}

static void prepare(const struct known *k, struct sim_cfg *sim, struct drive_cfg *cfg)
{
	*sim = sim_defaults();
	sim->target[0] = (struct sim_target){ .kappa = k->slope > 0 ? k->slope : k->kappa,
					      .slack_ns = k->slack_ns,
					      .hits = k->verdict == VERDICT_NOT_CALLED ? 0 : 2 };
	sim->drift = k->drift > 0 ? k->drift : 0.03;
	sim->horizon_s = seconds_of(k);
	sim->ar_sd = k->ar_sd > 0 ? k->ar_sd : 0.01;
	sim->period_s = k->period_s;
	sim->at_changes = k->period_s > 0;
	sim->arrivals_per_s = k->arrivals_per_s;
	sim->poisson = true;
	sim->lanes = k->lanes ? k->lanes : 1;
	if (k->batcher)
		sim_batcher(sim);
	if (k->pipeline)
		sim_pipeline(sim);
	sim->first_stage = k->stage;
	sim->mix_sd = k->mix;
	sim->mix_tau_s = 0.5;
	*cfg = drive_defaults();
	cfg->time_ns = (uint64_t)(seconds_of(k) * 1e9);
	cfg->n_adjust = k->adjusted;
	if (k->verdict == VERDICT_INVALID) { /* only the control can tell */
		sim->n_targets = 2;
		sim->target[1] = (struct sim_target){ .kappa = 1, .hits = 1 };
		cfg->control = 1;
	}
}

static void add(const struct known *k, const struct sweep_result *res, struct found *f)
{
	const struct sweep_target *t = &res->target[0];
	double s = k->slack_ns;

	f->runs++;
	f->held += t->kappa.lo <= k->kappa && k->kappa <= t->kappa.hi;
	f->right += t->verdict == k->verdict;
	f->critical += t->verdict == VERDICT_CRITICAL;
	f->longest = fmax(f->longest, res->time_s / seconds_of(k));
	if (t->slack_kind != SLACK_FOUND)
		return;
	f->slack_found++;
	f->slack_near += fabs(t->slack_ns.est - s) <= 0.1 * s;
	f->slack_held += t->slack_ns.lo <= s && s <= t->slack_ns.hi;
}

static void row(const struct known *k, const char *what, double share, double lo, double hi)
{
	char name[96], goal[32];

	snprintf(name, sizeof(name), "%s: %s", k->name, what);
	if (hi < 1)
		snprintf(goal, sizeof(goal), "%.0f to %.0f", 100 * lo, 100 * hi);
	else
		snprintf(goal, sizeof(goal), ">= %.0f", 100 * lo);
	row_add("sweep", name, 100 * share, "%", goal, share >= lo && share <= hi);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The half-width of kappa's interval after as many seconds: the median of the sweeps. */
static double half_after(const struct known *k, double seconds)
{
	struct known timed = *k;
	struct drive_cfg cfg;
	struct sim_cfg sim;
	double half[TIME_RUNS];

	timed.seconds = seconds;
	prepare(&timed, &sim, &cfg);
	for (int r = 0; r < TIME_RUNS; r++) {
		struct sweep_result *res = sim_sweep(&sim, &cfg, (uint64_t)r + 1);
		const struct sweep_estimate *kappa = &res->target[0].kappa;

		half[r] = isnan(kappa->lo) ? INFINITY : (kappa->hi - kappa->lo) / 2;
		sweep_result_free(res);
	}
	qsort(half, TIME_RUNS, sizeof(*half), by_value);
	return (half[TIME_RUNS / 2 - 1] + half[TIME_RUNS / 2]) / 2;
}

static void time_row(const struct known *k)
{
	static const double budget[] = { 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 60 };
	char name[96];

	snprintf(name, sizeof(name), "%s: budget for kappa to +-0.1", k->name);
	for (size_t i = 0; i < sizeof(budget) / sizeof(*budget); i++) {
		if (half_after(k, budget[i]) <= 0.1) {
			row_add("sweep", name, budget[i], "s", "<= 60", 1);
			return;
		}
	}
	row_missing("sweep", name, "<= 60", "wider after 60 s");
}

void bench_sweep(void)
{
	int runs = bench.quick ? 200 : 2000;

	for (size_t i = 0; i < sizeof(victims) / sizeof(*victims); i++) {
		const struct known *k = &victims[i];
		struct drive_cfg cfg;
		struct sim_cfg sim;
		struct found f = { 0 };

		prepare(k, &sim, &cfg);
		for (int r = 0; r < runs; r++) {
			struct sweep_result *res = sim_sweep(&sim, &cfg, (uint64_t)r + 1);

			add(k, res, &f);
			sweep_result_free(res);
		}
		if (k->verdict != VERDICT_INVALID && k->verdict != VERDICT_NOT_CALLED)
			row(k, "95 % interval holds kappa", f.held / f.runs, 0.92, 0.98);
		row(k, "verdict right", f.right / f.runs, 0.95, 1);
		if (k->kappa == 0)
			row_add("sweep", "... false CRITICAL", 100 * f.critical / f.runs, "%",
				"<= 5", met_below(f.critical / f.runs, 0.05));
		if (k->slack_ns > 0) {
			row(k, "slack within 10 %", f.slack_near / f.runs, 0.95, 1);
			row(k, "95 % interval holds the slack", f.slack_held / f.slack_found, 0.92,
			    0.98);
		}
		if (k->verdict != VERDICT_INVALID && k->verdict != VERDICT_NOT_CALLED &&
		    !k->seconds)
			time_row(k);
		row_add("sweep", "... of the budget, at most", 100 * f.longest, "%", "<= 100",
			met_below(f.longest, 1));
	}
}
