/* SPDX-License-Identifier: MIT */
/*
 * Which targets take part in the blocks to come, and with which doses.
 *
 * A target leaves the blocks when its verdict is firm and its interval narrow, as long as another
 * is open: the time goes to that one. What is firm is judged by an interval of 99.9 %, since it is
 * looked at again and again: a looser one would choose moments at which chance helps, and the
 * interval of 95 % that is printed at the end would not hold the truth in 95 % of sweeps
 * (Haybittle 1971, Peto 1976; the simulations of test-sweep-arms.c show what it holds).
 *
 * A target whose slack is found in the first half of the blocks has one dose in the second, unless
 * it is known by then whether a delay below the slack is felt. That is not a stop: all blocks are
 * used, and how many there are does not depend on what they show.
 */
#include <stdlib.h>
#include "drive-priv.h"
#include "slack.h"
#include "stat.h"
#include "src/base/must.h"

#define LOOK_ROUNDS 4
#define NEAR_SLACK  0.95   /* of the least that it may be */
#define FIRM	    0.9995 /* of a two-sided interval's ends */

static bool decided(const struct drive *drive, size_t target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = drive->work[target].last ? work_last(drive, target) :
							 work_of(drive, target);
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

/*
 * Once a slack is found, it is open whether a delay below it is felt. Larger doses add nothing to
 * that: the blocks of the second half have one dose alone, just below the slack, where the most
 * would be felt. True: that is so, and is not known yet.
 */
static bool slack_open(const struct drive *drive, const struct exp_member *m, struct slack_fit *fit)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = work_of(drive, m->target);
	double threshold = drive->cfg.threshold;
	struct infer_kappa line;
	struct infer_data data;

	record_data(&drive->rec, &of, &view, &data, NULL);
	infer_kappa(&data, NULL, &line);
	slack_fit(&data, &line, threshold, NULL, fit);
	record_data_free(&data);
	return fit->kind == SLACK_FOUND && fit->below && fit->origin.kappa.hi >= threshold &&
	       fit->origin.kappa.lo <= threshold;
}

/* In place of the largest dose that is known to lie below the slack. */
static void narrow(struct drive *drive, const struct exp_member *m)
{
	struct work *work = &drive->work[m->target];
	struct slack_fit fit;
	double x;

	if (work->last || !slack_open(drive, m, &fit))
		return;
	work->last = fit.below;
	x = fmax(NEAR_SLACK * fit.slack_ns.lo, work->esc.least_ns);
	work->last_ns = delay_of(drive, m->target, x);
	exp_dose(drive, m->first + work->last - 1, m->target, work->last_ns);
}

/* From the next block on; true: that is a change. */
static bool member_in(struct drive *drive, struct exp_member *m, bool in)
{
	const struct work *work = &drive->work[m->target];
	size_t was = m->n_in;

	m->first_in = m->first + (work->last ? work->last - 1 : 0);
	m->n_in = !in ? 0 : work->last ? 1 : m->n_doses;
	return m->n_in != was;
}

/* Leaves all in where none is open. */
static bool members_in(struct drive *drive, bool leave, bool second_half)
{
	struct experiment *exp = &drive->exp;
	bool *in = must_calloc(exp->n_members, sizeof(*in)), any = false, changed = false;

	for (size_t i = 0; i < exp->n_members && leave; i++)
		any |= in[i] = !decided(drive, exp->member[i].target);
	for (size_t i = 0; i < exp->n_members; i++) {
		struct exp_member *m = &exp->member[i];

		if (second_half && m->n_in)
			narrow(drive, m);
		changed |= member_in(drive, m, any ? in[i] : m->n_in > 0);
	}
	free(in);
	return changed;
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

/* True: for a round of all that takes part now. */
static bool time_left(const struct drive *drive)
{
	struct plan_cfg plan = exp_groups(drive);
	bool left = rounds_left(drive, &plan);

	free((void *)plan.group);
	return left;
}

void main_between(struct drive *drive)
{
	struct experiment *exp = &drive->exp;
	bool look = ++exp->rounds >= PILOT_BLOCKS_MIN && exp->rounds % LOOK_ROUNDS == 0;
	bool main = exp->stage == STAGE_MAIN && !drive->cfg.runs, leave, second_half;
	struct plan_cfg plan;

	if (look && exp->stage == STAGE_MAIN)
		drive_adjust(drive);
	if (hold_due(drive)) {
		exp->deadline_ns = drive->now_ns;
		return;
	}
	leave = look && main && exp->n_members > 1;
	second_half = main && !drive->cfg.n_doses && !drive->cfg.response &&
		      2 * exp->rounds >= exp->size.blocks;
	if ((!leave && !second_half) || !time_left(drive) || !members_in(drive, leave, second_half))
		return;
	plan = exp_groups(drive);
	if (rounds_left(drive, &plan))
		plan_change(&exp->plan, &plan);
	free((void *)plan.group);
}
