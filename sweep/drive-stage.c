/* SPDX-License-Identifier: MIT */
/* What comes after the pilot: the positive control, the screening, the targets. */
#include <stdlib.h>
#include "drive-priv.h"
#include "verdict.h"
#include "src/base/must.h"

#define SHARE_CONTROL 0.15 /* of what is left then */
#define SHARE_SCREEN  0.50
#define SCREEN_FROM   9	   /* targets: fewer are measured side by side in that time */
#define CONTROL_DOSE  0.10 /* of T0 */

/* --- the positive control --- */

static bool control_begin(struct drive *drive)
{
	size_t target = drive->cfg.control;
	double budget = SHARE_CONTROL * left_ns(drive);
	double dose = fmin(CONTROL_DOSE, drive->cfg.max_slowdown);
	struct plan_cfg plan;
	struct sizing size;

	if (drive->cfg.control_auto) /* only whether there is a response matters */
		dose = drive->cfg.max_slowdown;
	if (target == DRIVE_NONE || drive->control_experiment >= 0 ||
	    !(drive->work[target].felt > 0))
		return false;
	/* What may follow the program's speed is tested where that is changed for certain. */
	if (drive->cfg.control_auto && drive_busiest(drive) >= VERDICT_BUSY && !drive->cfg.n_adjust)
		return false;
	if (drive->cfg.runs)
		budget = left_ns(drive);
	exp_open(drive, STAGE_CONTROL, false);
	exp_add(drive, target, 1);
	exp_dose(drive, 0, target, delay_of(drive, target, dose * drive->pilot.t_ns));
	plan = exp_groups(drive);
	exp_size(drive, budget, &plan, false, 0, &size);
	drive->control_experiment = drive->n_experiments;
	exp_start(drive, &plan, &size, budget);
	free((void *)plan.group);
	return true;
}

/* --- screening --- */

static bool screening_wanted(struct drive *drive)
{
	size_t n = main_left(drive);

	if (drive->screened || drive->cfg.runs || n < SCREEN_FROM)
		return false;
	/* Not where all targets can be measured side by side, with the escalation before it. */
	return 3 * main_needed_ns(drive, n) > left_ns(drive);
}

static void screening_open(struct drive *drive)
{
	size_t *target = must_calloc(drive->n_order, sizeof(*target)), n = 0;

	for (size_t i = 0; i < drive->n_order; i++)
		if (drive->work[drive->order[i]].felt > 0)
			target[n++] = drive->order[i];
	screen_open(&drive->screen, target, n, drive->cfg.threshold, &drive->rng);
	drive->screen_deadline_ns = drive->now_ns + (uint64_t)(SHARE_SCREEN * left_ns(drive));
	drive->screening = true;
	free(target);
}

/* Survivors in the order of their response; all other targets have a verdict. */
static void screening_close(struct drive *drive)
{
	struct screen *screen = &drive->screen;

	screen_stop(screen);
	for (size_t i = 0; i < screen->n; i++) {
		struct work *work = &drive->work[screen->member[i]];

		if (screen->state[i] != SCREEN_HIDDEN)
			continue;
		work->state = WORK_SCREENED;
		work->bound = screen->bound[i];
	}
	drive->n_order = screen_survivors(screen, drive->order);
	drive->screening = false;
	drive->screened = true;
}

/* Every member by the same injected time per item. */
static bool group_begin(struct drive *drive)
{
	const size_t *member = NULL;
	size_t n = screen_next(&drive->screen, &member), tests = screen_tests(drive->screen.n);
	double left = (double)drive->screen_deadline_ns - (double)drive->now_ns, budget;
	double bound = drive_bound(drive) * drive->pilot.t_ns;
	struct plan_cfg plan;
	struct sizing size;

	if (!n)
		return false;
	tests = tests > drive->screen.found + 1 ? tests - drive->screen.found : 1;
	budget = left / (double)tests;
	exp_open(drive, STAGE_SCREEN, true);
	for (size_t i = 0; i < n; i++)
		exp_add(drive, member[i], 1);
	for (size_t i = 0; i < n; i++)
		exp_dose(drive, 0, member[i], delay_of(drive, member[i], bound / (double)n));
	plan = exp_groups(drive);
	exp_size(drive, budget, &plan, false, 0, &size);
	if (size.enough || size.needed_ns <= left) {
		budget = fmax(budget, size.needed_ns / SHARE_USED);
		exp_size(drive, budget, &plan, false, 0, &size);
		exp_start(drive, &plan, &size, budget);
	} else {
		exp_close(drive);
		n = 0;
	}
	free((void *)plan.group);
	return n > 0;
}

static void group_over(struct drive *drive)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = { drive->exp.id, -1, 0, 1 };
	struct infer_kappa kappa;
	struct infer_data data;

	record_data(&drive->rec, &of, &view, &data, NULL);
	infer_kappa(&data, NULL, &kappa);
	if (kappa.n < PILOT_BLOCKS_MIN) /* cut short: no result */
		kappa.kappa = SWEEP_UNKNOWN;
	screen_tell(&drive->screen, &kappa.kappa);
	record_data_free(&data);
}

/* --- the next stage --- */

void stage_next(struct drive *drive)
{
	if (control_begin(drive))
		return;
	if (!drive->screening && screening_wanted(drive))
		screening_open(drive);
	if (drive->screening) {
		if (group_begin(drive))
			return;
		screening_close(drive);
	}
	drive->screened = true;
	if (!exp_any(drive))
		main_enter(drive);
	else if (!hold_next(drive))
		drive_finish(drive);
}

static void stage_over(struct drive *drive)
{
	switch (drive->exp.stage) {
	case STAGE_ESCALATE:
		main_probed(drive);
		return;
	case STAGE_SCREEN:
		group_over(drive);
		break;
	case STAGE_MAIN:
		for (size_t i = 0; i < drive->exp.n_members; i++)
			drive->work[drive->exp.member[i].target].state = WORK_DONE;
		break;
	default:
		break;
	}
	exp_close(drive);
	stage_next(drive);
}

const struct exp_events stage_events = { plan_fill, main_between, main_restarted, stage_over };
