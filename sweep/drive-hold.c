/* SPDX-License-Identifier: MIT */
/*
 * Is what is hidden in windows hidden for longer, too? Something that is worked off between
 * windows, such as a full buffer before a stage that waits, hides a delay of one window and not one
 * that stays. So a target that seems to be hidden, or hidden up to a slack, is delayed by its
 * largest dose for many windows in a row at the end, and what the last of them took is compared
 * with as many windows without a delay that follow.
 */
#include <math.h>
#include <stdlib.h>
#include "drive-priv.h"
#include "slack.h"
#include "stat.h"
#include "src/base/must.h"

#define HOLD_SHARE  0.20 /* of the time of the main blocks, where a target is hidden; */
#define HOLD_SHARED 0.10 /* ... where another one is open, and needs the time */
#define HOLD_DELAY  0.6	 /* of its windows have the delay */
#define HOLD_LEAST  5	 /* windows with the delay, ... */
#define HOLD_AFTER  3	 /* ... and without */
#define HOLD_GROUPS 5	 /* of windows without a delay, in the main blocks: for the spread */
#define HIDDEN_MOST 0.3	 /* of kappa's upper end: above it, it is not hidden anyway */
#define HOLD_LEVEL  0.9995

/* ---- which targets, and when ---- */

enum seems { SEEMS_HIDDEN, SEEMS_OPEN, SEEMS_FELT };

static enum seems seems(const struct drive *drive, size_t target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = work_of(drive, target);
	double threshold = drive->cfg.threshold;
	struct infer_kappa line;
	struct slack_fit fit;
	struct infer_data data;

	record_data(&drive->rec, &of, &view, &data, NULL);
	infer_kappa(&data, NULL, &line);
	slack_fit(&data, &line, threshold, NULL, &fit);
	record_data_free(&data);
	if (fit.origin.kappa.hi < HIDDEN_MOST)
		return SEEMS_HIDDEN;
	return line.kappa.lo > 1 - threshold || line.kappa.hi - line.kappa.lo < threshold ?
		       SEEMS_FELT :
		       SEEMS_OPEN;
}

/* How many windows fit for each of n targets; false: too few to see anything. */
static bool hold_fits(const struct drive *drive, size_t n, struct hold *hold)
{
	double left = SHARE_USED * ((double)drive->exp.deadline_ns - (double)drive->now_ns);
	double guard = (double)drive->exp.size.guard_ns, window = exp_windows_ns(drive, 1) - guard;
	double windows = floor((left / (double)n - 2 * guard) / window);

	if (!(windows >= HOLD_LEAST + HOLD_AFTER))
		return false;
	hold->delayed = (size_t)fmax(HOLD_LEAST, floor(HOLD_DELAY * windows));
	hold->after = (size_t)windows - hold->delayed;
	if (hold->after < HOLD_AFTER) {
		hold->after = HOLD_AFTER;
		hold->delayed = (size_t)windows - HOLD_AFTER;
	}
	return true;
}

/* Those that seem hidden, to *target; true: another one is open. */
static bool candidates(const struct drive *drive, size_t *target, size_t *n)
{
	const struct experiment *exp = &drive->exp;
	bool open = false;

	*n = 0;
	for (size_t i = 0; i < exp->n_members; i++) {
		enum seems how = seems(drive, exp->member[i].target);

		open |= how == SEEMS_OPEN;
		if (how == SEEMS_HIDDEN)
			target[(*n)++] = exp->member[i].target;
	}
	return open;
}

bool hold_due(struct drive *drive)
{
	struct experiment *exp = &drive->exp;
	struct hold *hold = &drive->hold;
	double spent = (double)(drive->now_ns - hold->from_ns);
	double share = 1 - spent / ((double)exp->deadline_ns - (double)hold->from_ns);

	if (hold->planned || exp->stage != STAGE_MAIN || drive->cfg.runs || drive->cfg.response ||
	    exp->rounds < PILOT_BLOCKS_MIN || share > HOLD_SHARE)
		return false;
	free(hold->target);
	hold->target = must_calloc(exp->n_members, sizeof(*hold->target));
	if (candidates(drive, hold->target, &hold->n_targets) && share > HOLD_SHARED)
		return false;
	hold->planned = true;
	while (hold->n_targets && !hold_fits(drive, hold->n_targets, hold))
		hold->n_targets--;
	hold->size = exp->size;
	return hold->n_targets > 0;
}

void hold_plan(struct drive *drive)
{
	free(drive->hold.target);
	drive->hold = (struct hold){ .from_ns = drive->now_ns };
}

/* ---- its windows ---- */

/* An experiment for the first of them, and one for the last, which are judged. */
static void hold_window(struct drive *drive)
{
	struct experiment *exp = &drive->exp;
	struct hold *hold = &drive->hold;
	bool delayed = hold->at < hold->delayed, begins = !hold->at || hold->at == hold->delayed;
	size_t to = delayed ? hold->delayed : hold->delayed + hold->after;

	exp->id = hold->experiment + (hold->at + hold_judged(hold) >= to);
	exp->slot = (struct plan_slot){ .column = delayed ? COLUMN_DOSE : COLUMN_SHAM,
					.block = -1,
					.group = -1 };
	drive_set_step(drive, delayed ? ARM_DOSE : ARM_SHAM, delayed ? 0 : -1,
		       begins ? hold->size.guard_ns : 0, hold->size.window_ns);
}

static void hold_open(struct drive *drive, size_t target)
{
	struct work *work = &drive->work[target];
	struct experiment *exp = &drive->exp;

	exp_open(drive, STAGE_HOLD, false);
	exp_add(drive, target, 1);
	exp_dose(drive, 0, target, work->dose_ns[work->n_doses - 1]);
	exp->size = drive->hold.size;
	exp->open = true;
	drive->hold.experiment = drive->n_experiments;
	drive->hold.at = 0;
	drive->n_experiments += 2;
	work->hold = drive->hold.experiment;
}

bool hold_next(struct drive *drive)
{
	struct hold *hold = &drive->hold;
	bool first = drive->stage != STAGE_HOLD;

	if (!first && ++hold->at < hold->delayed + hold->after) {
		hold_window(drive);
		return true;
	}
	hold->n_done += !first;
	if (!hold->planned || hold->n_done >= hold->n_targets)
		return false;
	hold_open(drive, hold->target[hold->n_done]);
	hold_window(drive);
	return true;
}

/* ---- what they show ---- */

/* The mean of T in n windows of an arm without a delay, from *from on; NAN: there are not as many.
 */
static double group_mean(const struct record *rec, int experiment, size_t n, size_t *from)
{
	double sum = 0, got = 0;

	for (; *from < rec->n && got < (double)n; ++*from) {
		const struct record_row *row = &rec->row[*from];

		if (row->win.experiment != experiment || row->win.arm != ARM_SHAM ||
		    !isfinite(record_window_t(rec, row)))
			continue;
		sum += record_window_t(rec, row);
		got++;
	}
	return got < (double)n ? NAN : sum / got;
}

/* The standard deviation of the difference of two groups of windows without a delay, by the main
 * blocks: drift and slow noise are in it. Returns how many groups there were. */
static size_t spread_of(const struct record *rec, int experiment, size_t each, double *sd)
{
	double before = NAN, squares = 0;
	size_t from = 0, n = 0;

	for (;; n++) {
		double mean = group_mean(rec, experiment, each, &from);

		if (isnan(mean))
			break;
		if (n)
			squares += (mean - before) * (mean - before);
		before = mean;
	}
	*sd = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
	return n;
}

/* What the largest delay adds by what the blocks have shown: at most so much. */
static double expected(const struct sweep_target *target, double x)
{
	double least = target->slack_ns.lo, beyond = target->kappa_beyond.hi;

	if (target->slack_kind != SLACK_FOUND && target->slack_kind != SLACK_BRACKET)
		return fmax(0, target->kappa.hi) * x;
	least = least > 0 ? fmin(least, x) : 0;
	return fmax(0, target->kappa.hi) * least + (beyond > 1 ? beyond : 1) * (x - least);
}

/* For how long it was delayed; NAN: not as long as planned. */
static double time_of(const struct drive *drive, int experiment)
{
	const struct record *rec = &drive->rec;
	size_t n[ARM_COUNT] = { 0 }, all = drive->hold.delayed + drive->hold.after;
	uint64_t begin = 0, end = 0;

	for (size_t i = 1; i < rec->n; i++) {
		const struct sweep_window *win = &rec->row[i].win;

		if (win->experiment != experiment && win->experiment != experiment + 1)
			continue;
		begin = begin ? begin : rec->row[i - 1].win.end_ns;
		end = win->arm == ARM_DOSE ? win->end_ns : end;
		n[win->arm]++;
	}
	return n[ARM_DOSE] + n[ARM_SHAM] == all ? (double)(end - begin) / 1e9 : NAN;
}

void hold_fill(const struct drive *drive, size_t index, struct sweep_target *target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	const struct work *work = &drive->work[index];
	struct record_of of = { work->hold + 1, (int)index, 0, 1 };
	struct sweep_hold *out = &target->hold;
	struct infer_cell dose, sham;
	size_t groups;
	double sd, half, time_s;

	if (work->hold < 0)
		return;
	time_s = time_of(drive, work->hold);
	groups = spread_of(&drive->rec, work->experiment, hold_judged(&drive->hold), &sd);
	if (isnan(time_s) || groups < HOLD_GROUPS)
		return;
	dose = record_level(&drive->rec, &of, COLUMN_DOSE, &view);
	sham = record_level(&drive->rec, &of, COLUMN_SHAM, &view);
	half = stat_t_quantile(0.975, (double)groups - 1) * sd;
	out->time_s = time_s;
	out->x_ns = dose.x;
	out->delta_ns = (struct sweep_estimate){ dose.t - sham.t, dose.t - sham.t - half,
						 dose.t - sham.t + half };
	out->late = out->delta_ns.est - expected(target, dose.x) >
			    stat_t_quantile(HOLD_LEVEL, (double)groups - 1) * sd &&
		    out->delta_ns.est - expected(target, dose.x) > drive->cfg.threshold * dose.x;
}
