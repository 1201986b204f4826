/* SPDX-License-Identifier: MIT */
/* What is planned, before the first main block: doses, windows, and how narrow an interval. */
#include <stdlib.h>
#include "drive-priv.h"
#include "stat.h"
#include "src/base/must.h"

/*
 * The spread of a block's contrast of two arms (two windows each), as a share of T, from that of
 * the pilot's windows of about the same length; beyond the longest it falls with the root of the
 * length.
 */
static double noise_of(const struct pilot *pilot, double window_ns)
{
	double cv = NAN, length = NAN;

	for (int i = 0; i < PILOT_SPANS; i++) {
		double span = ldexp(pilot->window_ns, i);

		if (isnan(pilot->noise_cv[i]) || (!isnan(cv) && span > window_ns))
			continue;
		cv = pilot->noise_cv[i];
		length = span;
	}
	return cv * sqrt(length / window_ns);
}

/* Half-width of kappa by the doses' spread around their mean: see infer.h. */
static double expected(const struct drive *drive, const struct exp_member *m)
{
	double n = (double)drive->exp.size.blocks, arms = (double)m->n_doses + 1, mean = 0, ss;
	double sd = noise_of(&drive->pilot, drive->window_ns) * drive->pilot.t_ns / sqrt(2);
	const struct work *work = &drive->work[m->target];

	for (size_t i = 0; i < m->n_doses; i++)
		mean += work->felt * (double)work->dose_ns[i] / arms;
	ss = mean * mean;
	for (size_t i = 0; i < m->n_doses; i++) {
		double d = work->felt * (double)work->dose_ns[i] - mean;

		ss += d * d;
	}
	if (n < 2 || drive->cfg.runs)
		return NAN;
	return stat_t_quantile(0.975, n - 1) * sd / sqrt(ss * n);
}

void plan_fill(struct drive *drive)
{
	const struct experiment *exp = &drive->exp;
	struct sweep_plan *plan = &drive->plan;
	bool runs = drive->cfg.runs;

	sweep_plan_free(plan);
	plan->n_targets = exp->n_members;
	plan->target = must_calloc(plan->n_targets, sizeof(*plan->target));
	for (size_t i = 0; i < exp->n_members; i++) {
		const struct exp_member *m = &exp->member[i];
		size_t size = m->n_doses * sizeof(uint64_t);

		plan->target[i] = (struct sweep_planned){
			.target = (int)m->target,
			.n_doses = m->n_doses,
			.delay_ns = memcpy(must_calloc(1, size), drive->work[m->target].dose_ns,
					   size),
			.half_width = expected(drive, m),
		};
	}
	plan->groups = exp->plan.n_parts;
	plan->blocks = exp->size.blocks;
	plan->gates = exp->plan.gates;
	for (size_t g = 0; g < plan->groups; g++)
		plan->windows += order_length(&exp->plan.part[g].order) * plan->blocks;
	plan->windows += plan->gates * order_length(&exp->plan.gate);
	plan->window_s = runs ? NAN : (double)exp->size.window_ns / 1e9;
	plan->guard_s = runs ? NAN : (double)exp->size.guard_ns / 1e9;
	plan->time_s = exp_windows_ns(drive, plan->windows) / 1e9;
}
