/* SPDX-License-Identifier: MIT */
/* An experiment: a set of doses, its windows sized for a time, and run to the end of that time. */
#include <stdlib.h>
#include "drive-priv.h"
#include "src/base/must.h"

#define GATE_WINDOWS 6
#define GATES_MIN    4
/* One control for all saves the more the more targets share it, and the further apart its windows
 * and theirs are in time, the less drift they have in common. */
#define GROUP_TARGETS 4
#define GROUP_DOSES   9
#define RUN_DOSES     (ORDER_ARMS - 3)

double left_ns(const struct drive *drive)
{
	if (!drive->cfg.time_ns)
		return INFINITY;
	return fmax(0, (double)drive->cfg.time_ns - (double)drive->now_ns);
}

uint64_t delay_of(const struct drive *drive, size_t target, double x_ns)
{
	return (uint64_t)fmax(1, x_ns / drive->work[target].felt + 0.5);
}

void exp_close(struct drive *drive)
{
	if (drive->exp.open)
		plan_close(&drive->exp.plan);
	free(drive->exp.delay_ns);
	free(drive->exp.member);
	free(drive->exp.owner);
	drive->exp = (struct experiment){ .id = -1 };
}

void exp_open(struct drive *drive, enum sweep_stage stage, bool grouped)
{
	exp_close(drive);
	drive->stage = stage;
	drive->exp.stage = stage;
	drive->exp.grouped = grouped;
}

void exp_add(struct drive *drive, size_t target, size_t n_doses)
{
	struct experiment *exp = &drive->exp;
	size_t from = exp->grouped ? 0 : exp->n_doses, to = from + n_doses;
	size_t n = drive->cfg.n_targets;

	exp->member = must_realloc(exp->member, (exp->n_members + 1) * sizeof(*exp->member));
	exp->member[exp->n_members] = (struct exp_member){ target, from, n_doses, from, n_doses };
	if (to > exp->n_doses) {
		exp->owner = must_realloc(exp->owner, to * sizeof(*exp->owner));
		exp->delay_ns = must_realloc(exp->delay_ns, to * n * sizeof(*exp->delay_ns));
		for (size_t i = from; i < to; i++)
			memcpy(exp->delay_ns + i * n, drive->zero_ns, n * sizeof(*drive->zero_ns));
		for (size_t i = from; i < to; i++)
			exp->owner[i] = (int)exp->n_members;
		exp->n_doses = to;
	}
	exp->n_members++;
}

void exp_dose(struct drive *drive, size_t dose, size_t target, uint64_t delay_ns)
{
	drive->exp.delay_ns[dose * drive->cfg.n_targets + target] = delay_ns;
}

/* --- groups --- */

/* Of n targets, the most doses of one of which are so many. */
static size_t groups_for(const struct drive *drive, size_t n, size_t doses)
{
	size_t room = drive->cfg.runs ? RUN_DOSES : GROUP_DOSES, each = 1;

	while (each < GROUP_TARGETS && (each + 1) * doses <= room)
		each++;
	return (n + each - 1) / each;
}

static void deal(struct plan_group *group, size_t first, size_t n_doses)
{
	for (size_t i = 0; i < n_doses; i++)
		group->dose[group->n_doses++] = (int)(first + i);
}

struct plan_cfg exp_groups(const struct drive *drive)
{
	const struct experiment *exp = &drive->exp;
	size_t n = 0, most = 0, at = 0, n_groups;
	struct plan_group *group;

	for (size_t i = 0; i < exp->n_members; i++) {
		n += exp->member[i].n_in > 0;
		if (exp->member[i].n_in > most)
			most = exp->member[i].n_in;
	}
	n_groups = exp->grouped ? 1 : groups_for(drive, n, most);
	group = must_calloc(n_groups, sizeof(*group));
	for (size_t i = 0; i < exp->n_members; i++) {
		const struct exp_member *m = &exp->member[i];

		if (exp->grouped ? i == 0 : m->n_in > 0)
			deal(&group[at++ * n_groups / (exp->grouped ? 1 : n)], m->first_in,
			     m->n_in);
	}
	return (struct plan_cfg){ group, n_groups, exp->grouped ? 1 : n, 0, 0, drive->cfg.runs };
}

struct plan_cfg exp_groups_of(const struct drive *drive, size_t n_targets, size_t n_doses)
{
	size_t n_groups = groups_for(drive, n_targets, n_doses);
	struct plan_group *group = must_calloc(n_groups, sizeof(*group));

	for (size_t i = 0; i < n_targets; i++)
		deal(&group[i * n_groups / n_targets], i * n_doses, n_doses);
	return (struct plan_cfg){ group, n_groups, n_targets, 0, 0, drive->cfg.runs };
}

/* --- its time --- */

bool exp_any(const struct drive *drive)
{
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].experiment >= 0)
			return true;
	return false;
}

void exp_size_for(const struct drive *drive, double time_ns, double budget_ns,
		  const struct plan_cfg *plan, bool gates, size_t blocks, struct sizing *size)
{
	struct sizing_cfg cfg = { .guard_ns = drive->guard_ns,
				  .time_ns = (uint64_t)time_ns,
				  .depth_items = drive->cfg.depth_items,
				  .aligned = drive->cfg.aligned,
				  .overhead_ns = drive->overhead_ns,
				  .block_windows = plan_round(plan),
				  .shared = plan->n_targets > 1,
				  .gate_windows = gates ? GATE_WINDOWS : 0,
				  .gates_min = exp_any(drive) ? 1 : GATES_MIN,
				  .blocks_min = blocks,
				  .blocks_max = blocks };

	/* Windows of large given doses are put off by up to an item. */
	if (drive->cfg.n_doses && gates)
		cfg.overhead_ns += drive_given_dither(drive, budget_ns) / 2;
	cfg.budget_ns = (uint64_t)(SHARE_USED * budget_ns);
	if (drive->cfg.runs)
		*size = (struct sizing){ .blocks = drive->cfg.n_runs, .enough = true };
	else
		pilot_size(&drive->pilot, &cfg, size);
}

void exp_size(const struct drive *drive, double budget_ns, const struct plan_cfg *plan, bool gates,
	      size_t blocks, struct sizing *size)
{
	exp_size_for(drive, (double)drive->cfg.time_ns, budget_ns, plan, gates, blocks, size);
}

double exp_windows_ns(const struct drive *drive, size_t windows)
{
	const struct experiment *exp = &drive->exp;
	double each = (double)(exp->size.window_ns + exp->size.guard_ns), dither = 0;

	if (drive->cfg.runs)
		return drive->pilot.window_ns * (double)windows;
	if (drive->cfg.aligned && drive->pilot.period_ns > 0)
		return (double)windows *
		       ((double)exp->size.window_ns + pilot_aligned_ns(&drive->pilot,
								       (double)exp->size.guard_ns,
								       drive->overhead_ns, 1));
	if (drive->pilot.period_ns > 0)
		each += drive->pilot.period_ns / 2;
	for (size_t i = 0; i < exp->n_doses; i++)
		dither = fmax(dither, drive_item_dither(drive, (int)i, exp->size.window_ns));
	return (each + dither / 2 + drive->overhead_ns) * (double)windows;
}

/* --- its windows --- */

void exp_start(struct drive *drive, struct plan_cfg *plan, const struct sizing *size,
	       double budget_ns)
{
	struct experiment *exp = &drive->exp;

	plan->rounds = size->blocks;
	plan->gates = size->gates;
	exp->id = drive->n_experiments++;
	exp->size = *size;
	drive->window_ns = (double)size->window_ns;
	drive->exp_guard_ns = (double)size->guard_ns;
	exp->deadline_ns = UINT64_MAX;
	if (drive->cfg.time_ns)
		exp->deadline_ns = drive->now_ns + (uint64_t)fmin(budget_ns, left_ns(drive));
	plan_open(&exp->plan, plan, &drive->rng);
	exp->planned = exp->plan.n_blocks;
	exp->open = true;
	if (exp->stage == STAGE_MAIN)
		drive->events->begun(drive);
	exp_step(drive);
}

static enum sweep_arm arm_of(int column)
{
	if (column == COLUMN_OFF)
		return ARM_OFF;
	return column < COLUMN_DOSE ? ARM_SHAM : ARM_DOSE;
}

void exp_window(struct drive *drive)
{
	const struct experiment *exp = &drive->exp;
	enum sweep_arm arm = arm_of(exp->slot.column);

	drive_set_step(drive, arm, arm == ARM_DOSE ? exp->slot.column - COLUMN_DOSE : -1,
		       exp->size.guard_ns, exp->size.window_ns);
}

void exp_step(struct drive *drive)
{
	struct experiment *exp = &drive->exp;
	double now = (double)drive->now_ns;

	if (plan_between(&exp->plan))
		drive->events->between(drive);
	if (!plan_next(&exp->plan, &exp->slot) ||
	    (exp->slot.first &&
	     now + exp_windows_ns(drive, exp->slot.left) > (double)exp->deadline_ns))
		drive->events->over(drive);
	else if (!drive->events->restarted(drive))
		exp_window(drive);
}
