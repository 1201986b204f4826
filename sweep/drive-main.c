/* SPDX-License-Identifier: MIT */
/*
 * The doses, and the blocks from which kappa is estimated: all targets side by side, so that each
 * has an interval early, whenever the sweep ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include "drive-priv.h"
#include "src/base/must.h"
#include "stat.h"

#define SHARE_ESCALATE 0.35
#define BUSY_KNOWN     0.1
#define BLOCKS_FEW     2.5
#define RUN_DOSES      3
#define GUARD_RAISES   2
#define GUARD_BLOCKS   5

static double bound_ns(const struct drive *drive)
{
	return drive_bound(drive) * drive->pilot.t_ns;
}

static bool is_left(const struct drive *drive, size_t target)
{
	return drive->work[target].state == WORK_OPEN && drive->work[target].felt > 0;
}

size_t main_left(const struct drive *drive)
{
	size_t n = 0;

	for (size_t i = 0; i < drive->n_order; i++)
		n += is_left(drive, drive->order[i]);
	return n;
}

/* --- is there time? --- */

static size_t least_doses(const struct drive *drive)
{
	return drive->cfg.n_doses ? drive->cfg.n_doses : 1;
}

double main_needed_ns(const struct drive *drive, size_t n_targets)
{
	struct plan_cfg plan = exp_groups_of(drive, n_targets, least_doses(drive));
	struct sizing size;

	exp_size(drive, left_ns(drive), &plan, true, 0, &size);
	free((void *)plan.group);
	return size.needed_ns;
}

/* The least time: for an interval, perhaps a wide one, without a search for doses. */
static double least_ns(const struct drive *drive, size_t n_targets)
{
	return main_needed_ns(drive, n_targets) * BLOCKS_FEW / PILOT_BLOCKS_MIN;
}

/* The whole time with which eight blocks would have fit, if earlier stages took the same share. */
static double enough_ns(const struct drive *drive, const struct plan_cfg *plan)
{
	double time = (double)drive->cfg.time_ns, left = left_ns(drive) / time;
	struct sizing size = { .enough = false };

	if (drive->cfg.runs || !(left > 0))
		return NAN;
	while (!size.enough && time < 1e16) {
		time *= 1.1;
		exp_size_for(drive, time, time * left, plan, true, 0, &size);
	}
	return time;
}

static void skip(struct work *work, const char *why)
{
	work->state = WORK_SKIPPED;
	snprintf(work->reason, sizeof(work->reason), "%s", why);
}

/* As many as can have an interval: the last in order have none. */
static void skip_late(struct drive *drive)
{
	size_t n = main_left(drive), fit = n;
	struct plan_cfg plan;
	double enough;

	while (fit > 1 && least_ns(drive, fit) > left_ns(drive))
		fit--;
	if (fit == n)
		return;
	plan = exp_groups_of(drive, n, least_doses(drive));
	enough = enough_ns(drive, &plan);
	free((void *)plan.group);
	for (size_t i = drive->n_order; i-- > 0 && n > fit;) {
		struct work *work = &drive->work[drive->order[i]];

		if (!is_left(drive, drive->order[i]))
			continue;
		skip(work, "the time was over before its turn");
		work->needed_ns = enough;
		n--;
	}
}

/* --- the main blocks --- */

static void add_doses(struct drive *drive, size_t target, const uint64_t *delay_ns, size_t n)
{
	size_t first = drive->exp.n_doses;

	exp_add(drive, target, n);
	for (size_t i = 0; i < n; i++)
		exp_dose(drive, first + i, target, delay_ns[i]);
}

static void main_start(struct drive *drive, struct plan_cfg *plan, const struct sizing *size)
{
	double enough = size->enough ? NAN : enough_ns(drive, plan);
	struct experiment *exp = &drive->exp;

	for (size_t i = 0; i < exp->n_members; i++) {
		const struct exp_member *m = &exp->member[i];
		struct work *work = &drive->work[m->target];

		work->first = m->first;
		work->n_doses = m->n_doses;
		work->last = 0;
		for (size_t k = 0; k < m->n_doses; k++)
			work->dose_ns[k] =
				exp->delay_ns[(m->first + k) * drive->cfg.n_targets + m->target];
		work->experiment = drive->n_experiments;
		work->window_ns = (double)size->window_ns;
		work->needed_ns = enough;
	}
	exp_start(drive, plan, size, left_ns(drive));
	hold_plan(drive);
	free((void *)plan->group);
}

/* Are there enough blocks with that guard, of so many doses of each target? */
static bool guard_fits(struct drive *drive, double guard_ns, size_t doses)
{
	struct plan_cfg plan = exp_groups_of(drive, main_left(drive), doses);
	struct sizing size;

	drive->guard_ns = (uint64_t)guard_ns;
	exp_size(drive, left_ns(drive), &plan, true, 0, &size);
	free((void *)plan.group);
	return size.blocks >= GUARD_BLOCKS;
}

/*
 * The longest guard that the time allows, in which a change of the delay comes to be felt: of so
 * many doses; 0: of none.
 */
static size_t guard_longer(struct drive *drive, const struct carry *carry, size_t most)
{
	static const double taus[] = { 3, 2, 1.3 };
	uint64_t was = drive->guard_ns;

	for (size_t i = 0; i < sizeof(taus) / sizeof(*taus); i++) {
		double guard = taus[i] * carry->tau_ns;

		for (size_t doses = most; doses; doses = doses > 2 ? 2 : doses - 1) {
			if (guard > drive->exp_guard_ns && guard_fits(drive, guard, doses)) {
				drive->guard_raised++;
				return doses;
			}
			if (drive->cfg.n_doses)
				break;
		}
	}
	drive->guard_ns = was;
	return 0;
}

/*
 * Without a probe nothing is known of the function. The largest dose says the most of its slope;
 * half of it tells a slope from a slack.
 */
static size_t doses_unprobed(const struct drive *drive, size_t target, size_t most, double *x)
{
	const struct escalate *esc = &drive->work[target].esc;
	double bound = fmin(bound_ns(drive), fmax(esc->least_ns, esc->safe_ns));
	bool half = most > 1 && bound / 2 >= esc->least_ns;

	x[0] = half ? bound / 2 : bound;
	x[1] = bound;
	return half ? 2 : 1;
}

/* Opens the experiment with at most so many doses of each target. */
static void open_escalated(struct drive *drive, size_t doses)
{
	double x[ESCALATE_DOSES];
	uint64_t delay[ESCALATE_DOSES];

	exp_open(drive, STAGE_MAIN, false);
	for (size_t i = 0; i < drive->n_order; i++) {
		size_t target = drive->order[i], n;

		if (!is_left(drive, target))
			continue;
		n = escalate_doses(&drive->work[target].esc, doses, x);
		if (!n)
			n = doses_unprobed(drive, target, doses, x);
		for (size_t k = 0; k < n; k++)
			delay[k] = delay_of(drive, target, x[k]);
		add_doses(drive, target, delay, n);
	}
}

/*
 * As many doses as the time allows eight blocks of; two or three, which tell a part from a slack,
 * if there is time for five. Of several targets at most three: the fourth, between the others, adds
 * little to what is known of the slope, and makes the blocks longer for all. Doses that were not
 * probed are less worth, and need the eight.
 */
static void main_escalated(struct drive *drive)
{
	static const struct {
		size_t doses, blocks, unprobed;
	} design[] = {
		{ ESCALATE_DOSES, 8, 8 }, { 3, 8, 8 }, { 3, 5, 8 }, { 2, 5, 8 }, { 1, 0, 0 }
	};
	struct carry carry = record_carry(&drive->rec, drive->first_probe, -1);
	struct plan_cfg plan = { 0 };
	struct sizing size = { 0 };
	bool probed = drive->n_experiments > drive->first_probe;

	if (!drive->cfg.guard_ns && drive->guard_raised < GUARD_RAISES && carry_seen(&carry))
		guard_longer(drive, &carry, 1);
	for (size_t i = main_left(drive) > 1; i < sizeof(design) / sizeof(*design); i++) {
		free((void *)plan.group);
		open_escalated(drive, design[i].doses);
		plan = exp_groups(drive);
		exp_size(drive, left_ns(drive), &plan, true, 0, &size);
		if (size.blocks >= (probed ? design[i].blocks : design[i].unprobed) && !size.coarse)
			break;
	}
	main_start(drive, &plan, &size);
}

/* Given ones; else (whole runs are expensive: no probes) three doses up to the bound. */
static void main_given(struct drive *drive)
{
	const struct drive_cfg *cfg = &drive->cfg;
	uint64_t delay[RUN_DOSES];
	struct plan_cfg plan;
	struct sizing size;

	exp_open(drive, STAGE_MAIN, false);
	for (size_t i = 0; i < drive->n_order; i++) {
		size_t target = drive->order[i];

		if (!is_left(drive, target))
			continue;
		for (int k = 0; k < RUN_DOSES; k++)
			delay[k] = delay_of(drive, target,
					    ldexp(bound_ns(drive), k - (RUN_DOSES - 1)));
		add_doses(drive, target, cfg->n_doses ? drive->dose_ns : delay,
			  cfg->n_doses ? cfg->n_doses : RUN_DOSES);
	}
	plan = exp_groups(drive);
	exp_size(drive, left_ns(drive), &plan, true, 0, &size);
	main_start(drive, &plan, &size);
}

/* --- the search for doses --- */

static size_t add_probes(struct drive *drive)
{
	exp_open(drive, STAGE_ESCALATE, false);
	for (size_t i = 0; i < drive->n_order; i++) {
		size_t target = drive->order[i];
		double x = is_left(drive, target) ? escalate_next(&drive->work[target].esc) : 0;
		uint64_t delay = x > 0 ? delay_of(drive, target, x) : 0;

		if (x > 0)
			add_doses(drive, target, &delay, 1);
	}
	return drive->exp.n_members;
}

static void probe(struct drive *drive)
{
	/* Doublings from 1 % to the bound; one more for what is left to shrink. */
	double probes = 1 + fmax(1, log2(drive_bound(drive) / ESCALATE_FIRST));
	double budget = SHARE_ESCALATE * left_ns(drive) / probes;
	struct plan_cfg plan;
	struct sizing size;

	if (!add_probes(drive)) {
		main_escalated(drive);
		return;
	}
	plan = exp_groups(drive);
	exp_size(drive, budget, &plan, false, ESCALATE_PROBES, &size);
	if (size.enough && !size.coarse)
		exp_start(drive, &plan, &size, 2 * budget);
	else
		main_escalated(drive);
	free((void *)plan.group);
}

/* A thread that has work shows by itself how much of its time is idle, and with less noise. */
static bool response_unknown(const struct drive *drive)
{
	return drive->cfg.response && !(drive_busiest(drive) > BUSY_KNOWN);
}

static void tell_probe(struct drive *drive, const struct exp_member *m)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1, .throughput = true };
	struct record_of of = { drive->exp.id, (int)m->target, m->first, 1 };
	double *v = must_calloc(record_blocks(&drive->rec, of.experiment), sizeof(*v));
	int column = COLUMN_DOSE + (int)m->first;
	double x = record_level(&drive->rec, &of, column, &view).x;
	size_t n = record_contrast(&drive->rec, of.experiment, COLUMN_SHAM, column, RECORD_NS, v);
	struct escalate *esc = &drive->work[m->target].esc;

	if (n)
		escalate_tell(esc, x, v, n);
	else
		esc->over = true;
	if (n && response_unknown(drive))
		drive_response_probed(drive, &of, x);
	free(v);
}

void main_probed(struct drive *drive)
{
	for (size_t i = 0; i < drive->exp.n_members; i++)
		tell_probe(drive, &drive->exp.member[i]);
	probe(drive);
}

static void skip_often(const struct drive *drive, struct work *work)
{
	double every = fmax(1, (double)drive->cfg.every[work - drive->work]);
	double least = work->felt * every * (double)drive->cfg.floor_ns;
	double enough = escalate_every(least, bound_ns(drive));
	char why[SWEEP_REASON];

	snprintf(why, sizeof(why),
		 "called so often that the smallest honest delay would slow it by more than "
		 "--max-slowdown: use every=%.0f",
		 enough);
	skip(work, why);
	work->remedy.option = "every";
	snprintf(work->remedy.value, sizeof(work->remedy.value), "%.0f", enough);
}

static void open_escalations(struct drive *drive)
{
	for (size_t i = 0; i < drive->n_order; i++) {
		struct work *work = &drive->work[drive->order[i]];

		if (!is_left(drive, drive->order[i]))
			continue;
		if (!escalate_open(&work->esc, drive->pilot.t_ns, drive_bound(drive),
				   work->felt * (double)drive->cfg.floor_ns))
			skip_often(drive, work);
		else if (response_unknown(drive))
			escalate_safe(&work->esc, drive_response_safe_ns(drive, drive->order[i]));
	}
}

void main_enter(struct drive *drive)
{
	bool search = !drive->cfg.n_doses && !drive->cfg.runs;

	for (size_t i = 0; i < drive->n_order; i++)
		if (!(drive->work[drive->order[i]].felt > 0))
			drive->work[drive->order[i]].state = WORK_SKIPPED; /* NOT CALLED */
	if (search)
		open_escalations(drive);
	skip_late(drive);
	drive->first_probe = drive->n_experiments;
	if (!main_left(drive))
		drive_finish(drive);
	else if (search)
		probe(drive);
	else
		main_given(drive);
}

/* --- what an arm leaves in the pipeline --- */

/*
 * After a sixth and a third of the blocks: does an arm begin with items in the pipeline from the
 * arm before it? Then the guard is too short, and the data so far is biased towards none: start
 * over.
 */
static bool carries_over(const struct drive *drive, struct carry *carry)
{
	const struct experiment *exp = &drive->exp;
	int n = (int)exp->planned;

	if (drive->cfg.runs || drive->cfg.guard_ns || exp->stage != STAGE_MAIN ||
	    drive->guard_raised >= GUARD_RAISES || !exp->slot.first ||
	    (exp->slot.block != n / 6 && exp->slot.block != n / 3))
		return false;
	*carry = record_carry(&drive->rec, exp->id, -1);
	return carry_seen(carry);
}

/* The same doses, of each target at most so many: the outermost. */
static void main_again(struct drive *drive, size_t doses)
{
	struct plan_cfg plan;
	struct sizing size;

	exp_open(drive, STAGE_MAIN, false);
	for (size_t i = 0; i < drive->n_order; i++) {
		struct work *work = &drive->work[drive->order[i]];
		uint64_t *dose = work->dose_ns;

		if (!is_left(drive, drive->order[i]))
			continue;
		if (work->n_doses > doses) {
			dose[doses - 1] = dose[work->n_doses - 1];
			work->n_doses = doses;
		}
		add_doses(drive, drive->order[i], dose, work->n_doses);
	}
	plan = exp_groups(drive);
	exp_size(drive, left_ns(drive), &plan, true, 0, &size);
	main_start(drive, &plan, &size);
}

bool main_restarted(struct drive *drive)
{
	size_t most = 0, doses;
	struct carry carry;

	if (!carries_over(drive, &carry))
		return false;
	for (size_t i = 0; i < drive->exp.n_members; i++)
		if (drive->exp.member[i].n_doses > most)
			most = drive->exp.member[i].n_doses;
	doses = guard_longer(drive, &carry, most);
	if (doses)
		main_again(drive, doses);
	return doses;
}
