/* SPDX-License-Identifier: MIT */
/* Does a sweep tell the truth? Simulated programs with known answers, many times each, through the
 * machine that live sweeps use; how often 95 % intervals hold the truth, and the verdict is right.
 */
#include "bench.h"
#include "../unit/sweep-sim.h"

struct known {
	const char *name;
	double kappa; /* at no delay: what the verdict is about */
	struct sim_target target;
	enum sweep_verdict verdict;
	double drift, ar_sd;
	double period_s, arrivals_per_s;
	int lanes;
	double seconds;
};

/* Drift is linear over the sweep; noise AR(1), as shares of the time per item. */
static const struct known victims[] = {
	{ "serial", 1, { 1, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.01, 0, 0, 1, 60 },
	{ "serial, noisy", 1, { 1, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.05, 0, 0, 1, 60 },
	{ "serial, 5 s", 1, { 1, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.01, 0, 0, 1, 5 },
	{ "hidden", 0, { 0, 0, 0, 2 }, VERDICT_HIDDEN, 0.03, 0.01, 0, 0, 1, 60 },
	{ "slack of 15 %", 0, { 1, 15e3, 0, 2 }, VERDICT_HIDDEN, 0.03, 0.01, 0, 0, 1, 60 },
	{ "partial, 0.4", 0.4, { 0.4, 0, 0, 2 }, VERDICT_PARTIAL, 0.03, 0.01, 0, 0, 1, 60 },
	{ "convoy, 1.8", 1.8, { 1.8, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.01, 0, 0, 1, 60 },
	{ "4 ranks", 1, { 1, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.01, 0, 0, 4, 60 },
	{ "published at 10 Hz", 1, { 1, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.01, 0.1, 0, 1, 60 },
	{ "open, saturated", 1, { 1, 0, 0, 2 }, VERDICT_CRITICAL, 0.03, 0.01, 0, 12000, 1, 60 },
	{ "open, below", 0, { 1, 0, 0, 2 }, VERDICT_INVALID, 0.03, 0.01, 0, 6000, 1, 60 },
};

struct found {
	double runs, held, right, critical, slack_found, slack_near, slack_held, longest;
};

static void prepare(const struct known *k, struct sim_cfg *sim, struct drive_cfg *cfg)
{
	*sim = sim_defaults();
	sim->target[0] = k->target;
	sim->drift = k->drift;
	sim->horizon_s = k->seconds;
	sim->ar_sd = k->ar_sd;
	sim->period_s = k->period_s;
	sim->arrivals_per_s = k->arrivals_per_s;
	sim->poisson = true;
	sim->lanes = k->lanes;
	*cfg = drive_defaults();
	cfg->time_ns = (uint64_t)(k->seconds * 1e9);
	if (k->verdict == VERDICT_INVALID) { /* only the control can tell */
		sim->n_targets = 2;
		sim->target[1] = (struct sim_target){ .kappa = 1, .hits = 1 };
		cfg->control = 1;
	}
}

static void add(const struct known *k, const struct sweep_result *res, struct found *f)
{
	const struct sweep_target *t = &res->target[0];
	double s = k->target.slack_ns;

	f->runs++;
	f->held += t->kappa.lo <= k->kappa && k->kappa <= t->kappa.hi;
	f->right += t->verdict == k->verdict;
	f->critical += t->verdict == VERDICT_CRITICAL;
	f->longest = fmax(f->longest, res->time_s / k->seconds);
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
		if (k->verdict != VERDICT_INVALID)
			row(k, "95 % interval holds kappa", f.held / f.runs, 0.92, 0.98);
		row(k, "verdict right", f.right / f.runs, 0.95, 1);
		if (k->kappa == 0)
			row_add("sweep", "... false CRITICAL", 100 * f.critical / f.runs, "%",
				"<= 5", met_below(f.critical / f.runs, 0.05));
		if (k->target.slack_ns > 0) {
			row(k, "slack within 10 %", f.slack_near / f.runs, 0.95, 1);
			row(k, "95 % interval holds the slack", f.slack_held / f.slack_found, 0.92,
			    0.98);
		}
		row_add("sweep", "... of the budget, at most", 100 * f.longest, "%", "<= 100",
			met_below(f.longest, 1));
	}
}
