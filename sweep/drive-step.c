/* SPDX-License-Identifier: MIT */
/*
 * One step of the drive: its arm, its guard and its window. Also what all stages share: which rows
 * the result has, the end of the drive, and why a target has no own time.
 */
#include <stdio.h>
#include <string.h>
#include "drive-priv.h"
#include "verdict.h"

#define BOUND_LEAST 0.02 /* of the time per item: smaller doses are not told from noise */

/* Half a period on average, so that windows do not fall into step with the source. */
static double dither_ns(const struct drive *drive)
{
	return !drive->cfg.aligned && drive->pilot.period_ns > 0 ? drive->pilot.period_ns : 0;
}

/* The addition of a dose to an item, as a lane feels it; dose -1: none. */
static double dose_x_ns(const struct drive *drive, int dose)
{
	const struct experiment *exp = &drive->exp;
	double x = 0;

	for (size_t i = 0; dose >= 0 && i < drive->cfg.n_targets; i++)
		x += drive->work[i].felt > 0 ?
			     drive->work[i].felt *
				     (double)exp
					     ->delay_ns[(size_t)dose * drive->cfg.n_targets + i] :
			     0;
	return x;
}

/*
 * Windows must not fall into step with the items either, where a delay makes an item so long that
 * few fit into a window: begun at the same phase each time, it would always hold one too many, or
 * one too few.
 */
double drive_item_dither(const struct drive *drive, int dose, uint64_t window_ns)
{
	double x = dose_x_ns(drive, dose);

	if (drive->cfg.aligned || !(x > drive->pilot.t_ns))
		return 0;
	return fmin(x + drive->pilot.t_ns, (double)window_ns);
}

double drive_given_dither(const struct drive *drive, double budget_ns)
{
	double most = 0;

	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].state == WORK_OPEN)
			most = fmax(most, drive->work[i].felt);
	most *= (double)drive->cfg.dose_ns[drive->cfg.n_doses - 1];
	if (drive->cfg.aligned || !(most > drive->pilot.t_ns))
		return 0;
	return fmin(most + drive->pilot.t_ns, budget_ns / 200);
}

static uint64_t dither(struct drive *drive, int dose, uint64_t window_ns)
{
	double most = dither_ns(drive) + drive_item_dither(drive, dose, window_ns);

	return most > 0 ? (uint64_t)(rng_uniform(&drive->rng) * most) : 0;
}

/*
 * A window begins right after some lane's item. If all were of one length, they would end after the
 * same lane's item, or always after another's: the time would not fit the items. So they are longer
 * or shorter by up to half the time of a lane's item.
 */
static uint64_t uneven(struct drive *drive, int dose, uint64_t window_ns)
{
	double item = drive->pilot.t_ns + dose_x_ns(drive, dose);
	double most = fmin(item * fmax(1, (double)drive->rec.n_lanes), (double)window_ns);

	if (drive->cfg.aligned || !(item > 0))
		return window_ns;
	return (uint64_t)((double)window_ns + (rng_uniform(&drive->rng) - 0.5) * most);
}

/* The targets of a block's doses; of a gate all that take part. */
static void find_sharers(struct drive *drive)
{
	const struct experiment *exp = &drive->exp;
	const struct plan_group *group = NULL;

	drive->n_parts = 0;
	if (exp->slot.group >= 0)
		group = &exp->plan.part[exp->slot.group].group;
	for (size_t i = 0; i < exp->n_members; i++) {
		bool in = !group && exp->member[i].n_in > 0;

		for (size_t k = 0; group && k < group->n_doses; k++)
			in |= exp->owner[group->dose[k]] == (int)i;
		if (in)
			drive->part[drive->n_parts++] = exp->member[i].target;
	}
}

int drive_owner(const struct drive *drive, int dose)
{
	const struct experiment *exp = &drive->exp;

	if (exp->grouped && exp->n_members > 1)
		return -1;
	return (int)exp->member[exp->owner[dose]].target;
}

/* What is treated: the target of a dose; in SHAM and OFF all that are compared with it. */
static void treat(struct drive *drive, enum sweep_arm arm, int dose)
{
	const struct experiment *exp = &drive->exp;
	int owner = arm == ARM_DOSE ? drive_owner(drive, dose) : -1;
	bool shared = exp->n_members > 1 && !exp->grouped;

	memset(drive->treated, 0, drive->cfg.n_targets * sizeof(*drive->treated));
	drive->n_parts = 0;
	if (owner >= 0) {
		drive->treated[owner] = true;
		return;
	}
	for (size_t i = 0; i < exp->n_members && !shared; i++)
		drive->treated[exp->member[i].target] = true;
	if (!shared)
		return;
	find_sharers(drive);
	for (size_t i = 0; i < drive->n_parts; i++)
		drive->treated[drive->part[i]] = true;
	if (arm == ARM_OFF || drive->n_parts < 2)
		drive->n_parts = 0;
}

/* Before the doses are chosen, the threads of each target are looked at for themselves; of more
 * targets that takes too long for the pilot's short windows. */
#define PILOT_PARTS 62

static void treat_all(struct drive *drive)
{
	size_t n = drive->cfg.n_targets;

	drive->n_parts = 0;
	if (drive->stage > STAGE_PILOT || n < 2 || n > PILOT_PARTS)
		return;
	for (size_t i = 0; i < n; i++)
		drive->part[drive->n_parts++] = i;
}

/* The one target of a window; -1: several. */
static int target_of(const struct drive *drive)
{
	int target = -1;

	for (size_t i = 0; i < drive->cfg.n_targets; i++) {
		if (drive->treated[i] && target >= 0)
			return -1;
		target = drive->treated[i] ? (int)i : target;
	}
	return target;
}

void drive_set_step(struct drive *drive, enum sweep_arm arm, int dose, uint64_t guard_ns,
		    uint64_t window_ns)
{
	bool in_block = drive->exp.open;
	bool changed = arm != drive->last_arm || dose != drive->last_dose ||
		       (in_block && drive->exp.id != drive->last_experiment);
	struct drive_step *step = &drive->step;

	*step = (struct drive_step){ .what = DRIVE_WINDOW,
				     .stage = drive->stage,
				     .arm = arm,
				     .hooked = arm != ARM_OFF,
				     .timed = drive->stage == STAGE_OWN,
				     .target = -1,
				     .delay_ns = drive->zero_ns,
				     .window_ns = window_ns };
	if (!drive->cfg.runs && in_block) {
		step->guard_ns = (changed ? guard_ns : 0) + dither(drive, dose, window_ns);
		step->window_ns = uneven(drive, dose, window_ns);
	}
	if (in_block) {
		treat(drive, arm, dose);
		step->target = target_of(drive);
		step->block = drive->exp.slot.block;
		step->blocks = (int)drive->exp.plan.n_blocks;
	} else {
		treat_all(drive);
	}
	if (arm == ARM_DOSE)
		step->delay_ns = &drive->exp.delay_ns[(size_t)dose * drive->cfg.n_targets];
	drive->last_arm = arm;
	drive->last_dose = dose;
	drive->last_experiment = in_block ? drive->exp.id : -1;
}

bool drive_has_row(const struct drive *drive, size_t target)
{
	return target != drive->cfg.control || drive->cfg.control_too;
}

void drive_finish(struct drive *drive)
{
	drive->done = true;
	drive->step.what = DRIVE_DONE;
}

void drive_own_why(struct drive *drive, size_t target, const char *why)
{
	struct work *work = &drive->work[target];

	snprintf(work->own_why, sizeof(work->own_why), "%s", why);
}

struct record_of work_of(const struct drive *drive, size_t target)
{
	const struct work *work = &drive->work[target];

	return (struct record_of){ work->experiment, (int)target, work->first, work->n_doses };
}

struct record_of work_last(const struct drive *drive, size_t target)
{
	struct record_of of = work_of(drive, target);

	of.first += drive->work[target].last - 1;
	of.n_doses = 1;
	return of;
}

struct sweep_estimate drive_kappa(const struct drive *drive, size_t target)
{
	const struct work *work = &drive->work[target];
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = work_of(drive, target);
	struct infer_kappa kappa;
	struct judged judged;

	if (work->experiment < 0)
		return SWEEP_UNKNOWN;
	judged_open(drive, &of, &view, &judged, NULL);
	judged_infer(&judged, NULL, &kappa);
	judged_close(&judged);
	return kappa.kappa;
}

double drive_bound(const struct drive *drive)
{
	double most = drive->cfg.max_slowdown, busy = drive_busiest(drive);

	if (!drive->cfg.response || !(busy < VERDICT_BUSY))
		return most;
	return fmin(most, fmax(BOUND_LEAST, (1 - busy) / 3));
}

double drive_busiest(const struct drive *drive)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < drive->rec.n; i++) {
		const struct record_row *row = &drive->rec.row[i];

		if (row->win.arm != ARM_SHAM || isnan(row->busy))
			continue;
		sum += row->busy;
		n++;
	}
	return n > 0 ? sum / n : NAN;
}

double drive_share(const struct drive *drive, int experiment, size_t target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = { experiment, (int)target, 0, 0 }, all = { -1, -1, 0, 0 };
	double share = record_share(&drive->rec, &of, &view);

	if (isnan(share))
		share = record_share(&drive->rec, &all, &view);
	return isnan(share) ? 1 : share;
}
