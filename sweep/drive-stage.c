/* SPDX-License-Identifier: MIT */
#include "drive-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include "verdict.h"
#include "src/base/must.h"

#define SHARE_CONTROL  0.15 /* of what is left then */
#define SHARE_SCREEN   0.50
#define SHARE_ESCALATE 0.35 /* of a target's */
#define SHARE_USED     0.96 /* of the remaining time: the switching takes time too */
#define BLOCKS_FEW     2.5
#define SCREEN_FROM    4    /* targets */
#define CONTROL_DOSE   0.10 /* of T0 */
#define BLOCK_WINDOWS  2    /* per arm */
#define GATE_WINDOWS   6
#define GATES_MIN      4
#define RUN_DOSES      3
#define GUARD_RAISES   2
#define GUARD_FACTOR   8

static double left_ns(const struct drive *drive)
{
	if (!drive->cfg.time_ns)
		return INFINITY;
	return fmax(0, (double)drive->cfg.time_ns - (double)drive->now_ns);
}

/* --- an experiment: one set of doses --- */

static void exp_close(struct drive *drive)
{
	if (drive->exp.open)
		plan_close(&drive->exp.plan);
	free(drive->exp.delay_ns);
	drive->exp = (struct experiment){ .id = -1, .target = -1 };
}

static void treat(struct drive *drive, const size_t *target, size_t n)
{
	memset(drive->treated, 0, drive->cfg.n_targets * sizeof(bool));
	for (size_t i = 0; i < n; i++)
		drive->treated[target[i]] = true;
}

/* Doses as delays per hit: [dose * n_targets + target]. Sized later, by exp_start(). */
static void exp_open(struct drive *drive, enum sweep_stage stage, const size_t *target, size_t n,
		     size_t n_doses)
{
	exp_close(drive);
	treat(drive, target, n);
	drive->stage = stage;
	drive->exp.stage = stage;
	drive->exp.target = n == 1 ? (int)target[0] : -1;
	drive->exp.n_doses = n_doses;
	drive->exp.delay_ns = must_calloc(n_doses * drive->cfg.n_targets,
					  sizeof(*drive->exp.delay_ns));
}

static uint64_t delay_of(const struct drive *drive, size_t target, double x_ns)
{
	return (uint64_t)fmax(1, x_ns / drive->work[target].felt + 0.5);
}

static void exp_dose(struct drive *drive, size_t dose, size_t target, uint64_t delay_ns)
{
	drive->exp.delay_ns[dose * drive->cfg.n_targets + target] = delay_ns;
}

static bool any_measured(const struct drive *drive)
{
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].experiment >= 0)
			return true;
	return false;
}

/* A/A blocks are pooled over all targets: those of the first target serve for the others too. */
static void size_for_time(const struct drive *drive, double time_ns, double budget_ns,
			  size_t n_doses, bool gates, size_t blocks, struct sizing *size)
{
	struct sizing_cfg cfg = { .guard_ns = drive->guard_ns,
				  .time_ns = (uint64_t)time_ns,
				  .depth_items = drive->cfg.depth_items,
				  .aligned = drive->cfg.aligned,
				  .overhead_ns = drive->overhead_ns,
				  .block_windows = BLOCK_WINDOWS * (n_doses + 1),
				  .gate_windows = gates ? GATE_WINDOWS : 0,
				  .gates_min = any_measured(drive) ? 1 : GATES_MIN,
				  .blocks_min = blocks,
				  .blocks_max = blocks };

	/* Windows of large given doses are put off by up to an item. */
	if (drive->cfg.n_doses && n_doses == drive->cfg.n_doses)
		cfg.overhead_ns += drive_given_dither(drive, budget_ns) / 2;
	cfg.budget_ns = (uint64_t)(SHARE_USED * budget_ns);
	if (drive->cfg.runs)
		*size = (struct sizing){ .blocks = drive->cfg.n_runs, .enough = true };
	else
		pilot_size(&drive->pilot, &cfg, size);
}

static void size_for(const struct drive *drive, double budget_ns, size_t n_doses, bool gates,
		     size_t blocks, struct sizing *size)
{
	size_for_time(drive, (double)drive->cfg.time_ns, budget_ns, n_doses, gates, blocks, size);
}

static void exp_start(struct drive *drive, const struct sizing *size, double budget_ns)
{
	struct experiment *exp = &drive->exp;
	struct plan_cfg cfg = { .n_doses = exp->n_doses,
				.blocks = size->blocks,
				.gates = size->gates,
				.runs = drive->cfg.runs };

	exp->id = drive->n_experiments++;
	exp->size = *size;
	drive->window_ns = (double)size->window_ns;
	drive->exp_guard_ns = (double)size->guard_ns;
	exp->deadline_ns = UINT64_MAX;
	if (drive->cfg.time_ns)
		exp->deadline_ns = drive->now_ns + (uint64_t)fmin(budget_ns, left_ns(drive));
	plan_open(&exp->plan, &cfg, &drive->rng);
	exp->open = true;
	stage_step(drive);
}

/* --- escalation, and the main blocks --- */

static double bound_ns(const struct drive *drive)
{
	return drive->cfg.max_slowdown * drive->pilot.t_ns;
}

static size_t targets_left(const struct drive *drive)
{
	size_t n = 0;

	for (size_t i = 0; i < drive->n_order; i++)
		n += drive->work[drive->order[i]].state == WORK_OPEN &&
		     drive->work[drive->order[i]].felt > 0;
	return n;
}

/* The time for eight blocks of a target. */
static double needed_ns(const struct drive *drive)
{
	struct sizing size;

	size_for(drive, left_ns(drive), drive->cfg.n_doses ? drive->cfg.n_doses : 1, true, 0,
		 &size);
	return size.needed_ns;
}

/* The whole time with which eight blocks would have fit, if earlier stages took the same share. */
static double enough_ns(const struct drive *drive, size_t n_doses)
{
	double time = (double)drive->cfg.time_ns, left = left_ns(drive) / time;
	double n = fmax(1, (double)targets_left(drive));
	struct sizing size = { .enough = false };

	if (drive->cfg.runs || !(left > 0))
		return NAN;
	while (!size.enough && time < 1e16) {
		time *= 1.1;
		size_for_time(drive, time, time * left / n, n_doses, true, 0, &size);
	}
	return time;
}

/* The least time that a target takes: for an interval, perhaps a wide one. */
static double least_ns(const struct drive *drive)
{
	return needed_ns(drive) * BLOCKS_FEW / PILOT_BLOCKS_MIN; /* without a search for doses */
}

/*
 * Time for a target at its turn: an equal share of what is left; more where this is too little for
 * eight blocks, as long as each of the others can have an interval.
 */
static double share_ns(const struct drive *drive)
{
	double n = (double)targets_left(drive), left = left_ns(drive), least = least_ns(drive);
	double enough = needed_ns(drive) / (1 - SHARE_ESCALATE) / SHARE_USED;

	if (!isfinite(left) || !(least > 0))
		return left / fmax(1, n);
	n = fmax(1, fmin(n, floor(SHARE_USED * left / least)));
	return fmax(left / n, fmin(enough, left - (n - 1) * least / SHARE_USED));
}

static void main_begin(struct drive *drive, size_t target, const uint64_t *delay_ns, size_t n,
		       const struct sizing *size, double budget_ns)
{
	struct work *work = &drive->work[target];

	exp_open(drive, STAGE_MAIN, &target, 1, n);
	work->n_doses = n;
	for (size_t i = 0; i < n; i++) {
		work->dose_ns[i] = delay_ns[i];
		exp_dose(drive, i, target, delay_ns[i]);
	}
	work->experiment = drive->n_experiments;
	work->window_ns = (double)size->window_ns;
	work->needed_ns = size->enough ? NAN : enough_ns(drive, n);
	exp_start(drive, size, budget_ns);
}

static void guard_longer(struct drive *drive, uint64_t guard_ns)
{
	drive->guard_raised++;
	drive->guard_ns = GUARD_FACTOR * guard_ns;
}

/* As many doses as the time allows eight blocks of; two or three, which tell a part from a slack,
 * if there is time for five. */
static void main_escalated(struct drive *drive, size_t target)
{
	static const struct {
		size_t doses, blocks;
	} design[] = { { ESCALATE_DOSES, 8 }, { 3, 8 }, { 3, 5 }, { 2, 5 }, { 1, 0 } };
	double x[ESCALATE_DOSES], budget = share_ns(drive);
	uint64_t delay[ESCALATE_DOSES];
	struct sizing size;
	size_t n = 0;

	if (!drive->cfg.guard_ns && drive->guard_raised < GUARD_RAISES &&
	    record_carry(&drive->rec, drive->first_probe) > CARRY_T)
		guard_longer(drive, drive->exp.size.guard_ns);
	for (size_t i = 0; i < sizeof(design) / sizeof(*design); i++) {
		n = escalate_doses(&drive->esc, design[i].doses, x);
		if (!n) { /* no probe was completed */
			x[0] = bound_ns(drive);
			n = 1;
		}
		size_for(drive, budget, n, true, 0, &size);
		if (size.blocks >= design[i].blocks)
			break;
	}
	for (size_t i = 0; i < n; i++)
		delay[i] = delay_of(drive, target, x[i]);
	main_begin(drive, target, delay, n, &size, budget);
}

/* Whole runs are expensive: no probes, three doses up to the bound. */
static void main_runs(struct drive *drive, size_t target)
{
	uint64_t delay[RUN_DOSES];
	struct sizing size;

	for (size_t i = 0; i < RUN_DOSES; i++)
		delay[i] = delay_of(drive, target,
				    ldexp(bound_ns(drive), (int)i - (RUN_DOSES - 1)));
	size_for(drive, left_ns(drive), RUN_DOSES, true, 0, &size);
	main_begin(drive, target, delay, RUN_DOSES, &size, left_ns(drive));
}

static void main_given(struct drive *drive, size_t target)
{
	double budget = share_ns(drive);
	struct sizing size;

	size_for(drive, budget, drive->cfg.n_doses, true, 0, &size);
	main_begin(drive, target, drive->dose_ns, drive->cfg.n_doses, &size, budget);
}

static void probe_begin(struct drive *drive, size_t target)
{
	double x = escalate_next(&drive->esc), budget;
	struct sizing size;

	if (x > 0) {
		/* Doublings from 1 % to the bound; one more for the target's share to shrink. */
		double probes = 1 + fmax(1, log2(drive->cfg.max_slowdown / ESCALATE_FIRST));

		budget = SHARE_ESCALATE * share_ns(drive) / probes;
		size_for(drive, budget, 1, false, ESCALATE_PROBES, &size);
		if (size.enough) {
			exp_open(drive, STAGE_ESCALATE, &target, 1, 1);
			exp_dose(drive, 0, target, delay_of(drive, target, x));
			exp_start(drive, &size, 2 * budget);
			return;
		}
	}
	main_escalated(drive, target);
}

static void skip(struct work *work, const char *why)
{
	work->state = WORK_SKIPPED;
	snprintf(work->reason, sizeof(work->reason), "%s", why);
}

/* False: there is nothing to measure of it. */
static bool target_begin(struct drive *drive, size_t target)
{
	struct work *work = &drive->work[target];

	if (!(work->felt > 0)) {
		work->state = WORK_SKIPPED; /* the verdict is NOT CALLED */
		return false;
	}
	if (any_measured(drive) && least_ns(drive) > left_ns(drive)) {
		skip(work, "the time was over before its turn");
		work->needed_ns = enough_ns(drive, drive->cfg.n_doses ? drive->cfg.n_doses : 1);
		return false;
	}
	if (drive->cfg.n_doses) {
		main_given(drive, target);
		return true;
	}
	if (drive->cfg.runs) {
		main_runs(drive, target);
		return true;
	}
	if (!escalate_open(&drive->esc, drive->pilot.t_ns, drive->cfg.max_slowdown,
			   work->felt * (double)drive->cfg.floor_ns)) {
		skip(work, "called so often that the smallest honest delay would slow it by more "
			   "than --max-slowdown: use every=");
		return false;
	}
	drive->first_probe = drive->n_experiments;
	probe_begin(drive, target);
	return true;
}

static void probe_told(struct drive *drive)
{
	double v[8];
	size_t target = (size_t)drive->exp.target, n;
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1, .throughput = true };
	double x = record_level(&drive->rec, drive->exp.id, COLUMN_DOSE, &view).x;

	n = record_contrast(&drive->rec, drive->exp.id, COLUMN_SHAM, COLUMN_DOSE, false, v);
	if (n)
		escalate_tell(&drive->esc, x, v, n);
	else
		drive->esc.over = true;
	probe_begin(drive, target);
}

/* --- the positive control --- */

static bool control_begin(struct drive *drive)
{
	size_t target = drive->cfg.control;
	double budget = SHARE_CONTROL * left_ns(drive);
	double dose = fmin(CONTROL_DOSE, drive->cfg.max_slowdown);
	struct sizing size;

	if (drive->cfg.control_auto) /* only whether there is a response matters */
		dose = drive->cfg.max_slowdown;
	if (target == DRIVE_NONE || drive->control_experiment >= 0 ||
	    !(drive->work[target].felt > 0))
		return false;
	if (drive->cfg.control_auto && drive_busiest(drive) >= VERDICT_BUSY)
		return false;
	if (drive->cfg.runs)
		budget = left_ns(drive);
	size_for(drive, budget, 1, false, 0, &size);
	exp_open(drive, STAGE_CONTROL, &target, 1, 1);
	exp_dose(drive, 0, target, delay_of(drive, target, dose * drive->pilot.t_ns));
	drive->control_experiment = drive->n_experiments;
	exp_start(drive, &size, budget);
	return true;
}

/* --- screening --- */

static bool screening_wanted(struct drive *drive)
{
	size_t n = targets_left(drive);

	if (drive->screened || drive->cfg.runs || n < SCREEN_FROM)
		return false;
	/* Not where every target can be measured alone, with the escalation before it. */
	return 3 * needed_ns(drive) > left_ns(drive) / (double)n;
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
	struct sizing size;

	if (!n)
		return false;
	tests = tests > drive->screen.found + 1 ? tests - drive->screen.found : 1;
	budget = left / (double)tests;
	size_for(drive, budget, 1, false, 0, &size);
	if (!size.enough && size.needed_ns > left)
		return false;
	budget = fmax(budget, size.needed_ns / SHARE_USED);
	size_for(drive, budget, 1, false, 0, &size);
	exp_open(drive, STAGE_SCREEN, member, n, 1);
	for (size_t i = 0; i < n; i++)
		exp_dose(drive, 0, member[i],
			 delay_of(drive, member[i], bound_ns(drive) / (double)n));
	exp_start(drive, &size, budget);
	return true;
}

static void group_told(struct drive *drive)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct infer_kappa kappa;
	struct infer_data data;

	record_data(&drive->rec, drive->exp.id, 1, &view, &data, NULL);
	infer_kappa(&data, NULL, &kappa);
	if (kappa.n < PILOT_BLOCKS_MIN) /* cut short: no result */
		kappa.kappa = SWEEP_UNKNOWN;
	screen_tell(&drive->screen, &kappa.kappa);
	record_data_free(&data);
}

/* --- the next stage --- */

static void next_target(struct drive *drive)
{
	for (size_t i = 0; i < drive->n_order; i++) {
		size_t target = drive->order[i];

		if (drive->work[target].state == WORK_OPEN && target_begin(drive, target))
			return;
	}
	drive_finish(drive);
}

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
	next_target(drive);
}

static void exp_told(struct drive *drive)
{
	switch (drive->exp.stage) {
	case STAGE_ESCALATE:
		probe_told(drive);
		return;
	case STAGE_SCREEN:
		group_told(drive);
		break;
	case STAGE_MAIN:
		drive->work[drive->exp.target].state = WORK_DONE;
		break;
	default:
		break;
	}
	exp_close(drive);
	stage_next(drive);
}

static enum sweep_arm arm_of(int column)
{
	if (column == COLUMN_OFF)
		return ARM_OFF;
	return column < COLUMN_DOSE ? ARM_SHAM : ARM_DOSE;
}

/* The time of the rest of a block, as far as it is known. */
static double block_ns(const struct drive *drive, size_t windows)
{
	const struct sizing *size = &drive->exp.size;
	double each = (double)(size->window_ns + size->guard_ns);

	if (drive->cfg.runs)
		each = drive->pilot.window_ns;
	else if (!drive->cfg.aligned && drive->pilot.period_ns > 0)
		each += drive->pilot.period_ns / 2;
	if (!drive->cfg.runs && drive->exp.n_doses)
		each += drive_item_dither(drive, (int)drive->exp.n_doses - 1, size->window_ns) / 2;
	return (each + (drive->cfg.runs ? 0 : drive->overhead_ns)) * (double)windows;
}

static void exp_window(struct drive *drive)
{
	const struct experiment *exp = &drive->exp;
	enum sweep_arm arm = arm_of(exp->slot.column);

	drive_set_step(drive, arm, arm == ARM_DOSE ? exp->slot.column - COLUMN_DOSE : -1,
		       exp->size.guard_ns, exp->size.window_ns);
}

/*
 * After a sixth and a third of the blocks: does an arm begin with items in the pipeline from the
 * arm before it? Then the guard is too short, and the data so far is biased towards none: start
 * over.
 */
static bool carries_over(const struct drive *drive)
{
	const struct experiment *exp = &drive->exp;
	int n = (int)exp->plan.n_blocks;

	if (drive->cfg.runs || drive->cfg.guard_ns || exp->stage != STAGE_MAIN ||
	    drive->guard_raised >= GUARD_RAISES || !exp->slot.first ||
	    (exp->slot.block != n / 6 && exp->slot.block != n / 3))
		return false;
	return record_carry(&drive->rec, exp->id) > CARRY_T;
}

/* With fewer doses where the time left is too short for all: the outermost, then the largest. */
static void raise_guard(struct drive *drive)
{
	size_t target = (size_t)drive->exp.target, n = drive->exp.n_doses;
	uint64_t was = drive->guard_ns, *dose = drive->work[target].dose_ns;
	double budget = share_ns(drive);
	struct sizing size;

	guard_longer(drive, drive->exp.size.guard_ns);
	size_for(drive, budget, n, true, 0, &size);
	if (!size.enough && n > 2 && !drive->cfg.n_doses) {
		dose[1] = dose[n - 1];
		n = 2;
		size_for(drive, budget, n, true, 0, &size);
	}
	if (size.enough) {
		main_begin(drive, target, dose, n, &size, budget);
	} else {
		drive->guard_ns = was;
		exp_window(drive);
	}
}

void stage_step(struct drive *drive)
{
	struct experiment *exp = &drive->exp;

	if (!plan_next(&exp->plan, &exp->slot) ||
	    (exp->slot.first &&
	     (double)drive->now_ns + block_ns(drive, exp->slot.left) > (double)exp->deadline_ns)) {
		exp_told(drive);
	} else if (carries_over(drive)) {
		raise_guard(drive);
	} else {
		exp_window(drive);
	}
}
