/* SPDX-License-Identifier: MIT */
/*
 * Which targets take part in the blocks to come.
 *
 * A target leaves the blocks when its verdict is firm and its interval narrow, as long as another
 * is open: the time goes to that one. What is firm is judged by an interval of 99.9 %, since it is
 * looked at again and again: a looser one would choose moments at which chance helps, and the
 * interval of 95 % that is printed at the end would not hold the truth in 95 % of sweeps
 * (Haybittle 1971, Peto 1976; the simulations of test-sweep-arms.c show what it holds).
 */
#include <stdlib.h>
#include "drive-priv.h"
#include "stat.h"
#include "src/base/must.h"

#define LOOK_ROUNDS 4
#define FIRM	    0.9995 /* of a two-sided interval's ends */

static bool decided(const struct drive *drive, size_t target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = work_of(drive, target);
	double threshold = drive->cfg.threshold, half;
	struct infer_kappa kappa;
	struct judged judged;

	judged_open(drive, &of, &view, &judged, NULL);
	judged_infer(&judged, NULL, &kappa);
	judged_close(&judged);
	if (kappa.n < PILOT_BLOCKS_MIN || !(kappa.kappa.hi - kappa.kappa.lo < threshold))
		return false;
	half = stat_t_quantile(FIRM, kappa.df) * kappa.se;
	return kappa.kappa.est + half < threshold || kappa.kappa.est - half > 1 - threshold;
}

/* As many rounds as fit until the end, a gate to each fourth. */
static bool rounds_left(const struct drive *drive, struct plan_cfg *plan)
{
	double time = (double)drive->exp.deadline_ns - (double)drive->now_ns;
	double round = exp_windows_ns(drive, plan_round(plan));
	double gate = exp_windows_ns(drive, 6) / 4, n = floor(time / (round + gate));

	if (!(n >= 1))
		return false;
	plan->rounds = (size_t)fmin(n, 1000);
	plan->gates = plan->rounds / 4;
	return true;
}

void main_between(struct drive *drive)
{
	struct experiment *exp = &drive->exp;
	bool *in = must_calloc(exp->n_members, sizeof(*in)), any = false, changed = false;
	struct plan_cfg plan;
	bool look = ++exp->rounds >= PILOT_BLOCKS_MIN && exp->rounds % LOOK_ROUNDS == 0;

	if (look && exp->stage == STAGE_MAIN)
		drive_adjust(drive);
	if (look && exp->stage == STAGE_MAIN && exp->n_members > 1 && !drive->cfg.runs)
		for (size_t i = 0; i < exp->n_members; i++)
			any |= in[i] = !decided(drive, exp->member[i].target);
	for (size_t i = 0; i < exp->n_members && any; i++) {
		changed |= in[i] != exp->member[i].in;
		exp->member[i].in = in[i];
	}
	if (changed) {
		plan = exp_groups(drive);
		if (rounds_left(drive, &plan))
			plan_change(&exp->plan, &plan);
		free((void *)plan.group);
	}
	free(in);
}
