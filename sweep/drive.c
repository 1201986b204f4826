/* SPDX-License-Identifier: MIT */
#include "drive-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include "src/base/must.h"

struct drive_cfg drive_defaults(void)
{
	return (struct drive_cfg){ .control = DRIVE_NONE, .max_slowdown = 0.30, .threshold = 0.1 };
}

static int check(const struct drive_cfg *cfg, struct sb_err *err)
{
	if (!cfg->n_targets)
		return err_set(err, SB_EUSAGE, "no target to sweep");
	if (cfg->n_doses > DRIVE_DOSES)
		return err_set(err, SB_EUSAGE, "%zu doses, and %d are the most", cfg->n_doses,
			       DRIVE_DOSES);
	for (size_t i = 0; i < cfg->n_doses; i++)
		if (!cfg->dose_ns[i])
			return err_set(err, SB_EUSAGE, "a dose of 0 is what SHAM is for");
	if (cfg->runs && cfg->n_runs < 2)
		return err_set(err, SB_EUSAGE, "at least 2 runs of each arm are needed");
	if (!cfg->runs && !cfg->time_ns)
		return err_set(err, SB_EUSAGE, "a sweep needs a time");
	if (!(cfg->max_slowdown > 0) || !(cfg->max_slowdown < 100))
		return err_set(err, SB_EUSAGE, "the largest slowdown must lie above 0");
	if (!(cfg->threshold > 0) || !(cfg->threshold < 0.5))
		return err_set(err, SB_EUSAGE, "the threshold must lie between 0 and 0.5");
	if (cfg->quantile != 0 &&
	    (!cfg->response || cfg->n_adjust || !(cfg->quantile > 0) || !(cfg->quantile < 1)))
		return err_set(err, SB_EUSAGE, "a quantile is of responses, not adjusted");
	if (cfg->n_adjust > SWEEP_ADJUST || (cfg->n_adjust && cfg->runs))
		return err_set(err, SB_EUSAGE, "%zu covariates: at most %d, and not of runs",
			       cfg->n_adjust, SWEEP_ADJUST);
	if (cfg->control != DRIVE_NONE && cfg->control >= cfg->n_targets)
		return err_set(err, SB_EUSAGE, "the positive control is none of the targets");
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Rising and each once: a dose given twice would be an arm that is compared with itself. */
static void copy_doses(struct drive *drive, const struct drive_cfg *cfg)
{
	size_t n = 0;

	drive->dose_ns = must_calloc(cfg->n_doses, sizeof(*drive->dose_ns));
	if (!cfg->n_doses)
		return;
	memcpy(drive->dose_ns, cfg->dose_ns, cfg->n_doses * sizeof(*drive->dose_ns));
	qsort(drive->dose_ns, cfg->n_doses, sizeof(*drive->dose_ns), by_size);
	for (size_t i = 0; i < cfg->n_doses; i++)
		if (!n || drive->dose_ns[n - 1] != drive->dose_ns[i])
			drive->dose_ns[n++] = drive->dose_ns[i];
	drive->cfg.n_doses = n;
}

int drive_open(const struct drive_cfg *cfg, struct drive **out, struct sb_err *err)
{
	struct drive *drive;
	int rc = check(cfg, err);

	if (rc)
		return rc;
	drive = must_calloc(1, sizeof(*drive));
	drive->cfg = *cfg;
	drive->events = &stage_events;
	copy_doses(drive, cfg);
	drive->cfg.dose_ns = drive->dose_ns;
	drive->cfg.spec = NULL;
	drive->cfg.every = must_calloc(cfg->n_targets, sizeof(uint64_t));
	if (cfg->every)
		memcpy((uint64_t *)drive->cfg.every, cfg->every, cfg->n_targets * sizeof(uint64_t));
	drive->cfg.can_time = must_calloc(cfg->n_targets, sizeof(bool));
	if (cfg->can_time)
		memcpy((bool *)drive->cfg.can_time, cfg->can_time, cfg->n_targets * sizeof(bool));
	drive->rec.response = cfg->response;
	drive->rec.n_counters = cfg->n_counters;
	drive->rec.n_covariates = cfg->n_adjust;
	memcpy(drive->rec.rate, cfg->adjust_rate, sizeof(drive->rec.rate));
	drive->work = must_calloc(cfg->n_targets, sizeof(*drive->work));
	for (size_t i = 0; i < cfg->n_targets; i++) {
		drive->work[i] = (struct work){ .experiment = -1,
						.hold = -1,
						.felt = NAN,
						.own_ns = SWEEP_UNKNOWN,
						.needed_ns = NAN };
		drive->work[i].spec = must_strdup(cfg->spec[i]);
	}
	drive->treated = must_calloc(cfg->n_targets, sizeof(bool));
	drive->alone = must_calloc(2 * cfg->n_targets, sizeof(bool));
	drive->alone[cfg->n_targets - 1] = true;
	drive->part = must_calloc(cfg->n_targets, sizeof(*drive->part));
	drive->zero_ns = must_calloc(cfg->n_targets, sizeof(uint64_t));
	for (size_t i = 0; i < cfg->n_targets; i++)
		drive->zero_ns[i] = drive->cfg.every[i] > 1;
	drive->order = must_calloc(cfg->n_targets, sizeof(*drive->order));
	for (size_t i = 0; i < cfg->n_targets; i++)
		if (drive_has_row(drive, i))
			drive->order[drive->n_order++] = i;
	rng_seed(&drive->rng, cfg->seed);
	drive->control_experiment = -1;
	drive->guard_ns = cfg->guard_ns;
	drive->last_arm = ARM_COUNT;
	stage_first(drive);
	*out = drive;
	return 0;
}

void drive_close(struct drive *drive)
{
	if (!drive)
		return;
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		free(drive->work[i].spec);
	exp_close(drive);
	sweep_plan_free(&drive->plan);
	screen_close(&drive->screen);
	record_free(&drive->rec);
	free(drive->alone);
	free(drive->part);
	free(drive->lane_key);
	free((uint64_t *)drive->cfg.every);
	free((bool *)drive->cfg.can_time);
	free(drive->own);
	free(drive->series);
	free(drive->treated);
	free(drive->zero_ns);
	free(drive->order);
	free(drive->hold.target);
	free(drive->dose_ns);
	free(drive->work);
	free(drive);
}

static int role_index(struct record *rec, const char *role)
{
	for (size_t i = 0; i < rec->n_roles; i++)
		if (!strcmp(rec->role[i], role))
			return (int)i;
	rec->role = must_realloc(rec->role, (rec->n_roles + 1) * sizeof(*rec->role));
	rec->role[rec->n_roles] = must_strdup(role);
	return (int)rec->n_roles++;
}

size_t drive_targets(const struct drive *drive)
{
	return drive->cfg.n_targets;
}

bool drive_all_seen(const struct drive *drive)
{
	for (size_t i = 0; i < drive_targets(drive); i++)
		if (!drive->work[i].hits)
			return false;
	return !drive->dead;
}

size_t drive_role(struct drive *drive, const char *role)
{
	return (size_t)role_index(&drive->rec, role);
}

size_t drive_lane(struct drive *drive, const char *role, int pid, int tid)
{
	struct record *rec = &drive->rec;
	int r = role_index(rec, role);
	size_t i;

	for (i = 0; i < rec->n_lanes; i++)
		if (drive->lane_key[i][0] == r && drive->lane_key[i][1] == pid &&
		    drive->lane_key[i][2] == tid)
			return i;
	rec->lane = must_realloc(rec->lane, (i + 1) * sizeof(*rec->lane));
	drive->lane_key = must_realloc(drive->lane_key, (i + 1) * sizeof(*drive->lane_key));
	rec->lane[i] = (struct lane){ .role = r, .process = pid, .thread = tid };
	drive->lane_key[i][0] = r;
	drive->lane_key[i][1] = pid;
	drive->lane_key[i][2] = tid;
	return rec->n_lanes++;
}

const bool *drive_treated(const struct drive *drive)
{
	return drive->treated;
}

size_t drive_parts(const struct drive *drive)
{
	return drive->n_parts;
}

const bool *drive_part_treated(const struct drive *drive, size_t part)
{
	return drive->alone + (drive->cfg.n_targets - 1 - drive->part[part]);
}

const struct sweep_plan *drive_plan(const struct drive *drive)
{
	return drive->plan.n_targets ? &drive->plan : NULL;
}

void drive_next(struct drive *drive, struct drive_step *step)
{
	*step = drive->step;
}

static int check_known(const struct drive *drive, size_t n_lanes, size_t n_scans,
		       struct sb_err *err)
{
	if (n_lanes > drive->rec.n_lanes)
		return err_set(err, SB_EUSAGE, "%zu lanes given of %zu", n_lanes,
			       drive->rec.n_lanes);
	if (n_scans > drive->rec.n_roles)
		return err_set(err, SB_EUSAGE, "%zu roles given of %zu", n_scans,
			       drive->rec.n_roles);
	return 0;
}

static int check_window(const struct drive *drive, const struct drive_window *window,
			struct sb_err *err)
{
	if (drive->done)
		return err_set(err, SB_EUSAGE, "the sweep is over");
	if (!window->time_ns)
		return err_set(err, SB_EUSAGE, "a window of no time");
	if (window->now_ns < drive->now_ns)
		return err_set(err, SB_EUSAGE, "the clock went back");
	if (!(window->items >= 0) || !isfinite(window->items))
		return err_set(err, SB_EUSAGE, "progress went backwards");
	if (drive->cfg.response &&
	    (!(window->response_count >= 0) || isnan(window->response_sum_ns)))
		return err_set(err, SB_EUSAGE, "the response went backwards");
	for (size_t i = 0; i < drive->cfg.n_adjust; i++)
		if (!(window->amount[i] >= 0) || !isfinite(window->amount[i]))
			return err_set(err, SB_EUSAGE, "a covariate went backwards");
	if (window->part && window->n_parts != drive->n_parts)
		return err_set(err, SB_EUSAGE, "%zu parts given of %zu", window->n_parts,
			       drive->n_parts);
	for (size_t i = 0; window->part && i < window->n_parts; i++)
		if (check_known(drive, window->part[i].n_lanes, window->part[i].n_scans, err))
			return -SB_EUSAGE;
	return check_known(drive, window->n_lanes, window->n_scans, err);
}

/* Among those of its target, from 1 on: 0 is SHAM. */
static int dose_number(const struct experiment *exp)
{
	int dose = exp->slot.column - COLUMN_DOSE;

	return dose - (int)exp->member[exp->owner[dose]].first + 1;
}

/* What a row has of each target that shares it; the arrays stay the window's. */
static struct record_part *parts_of(const struct drive *drive, const struct drive_window *window)
{
	struct record_part *part = must_calloc(drive->n_parts, sizeof(*part));
	const struct drive_part all = { window->lane, window->n_lanes, window->scan,
					window->n_scans, window->counter };

	for (size_t i = 0; i < drive->n_parts; i++) {
		const struct drive_part *from = window->part ? &window->part[i] : &all;

		part[i] = (struct record_part){ .target = (int)drive->part[i],
						.hits = window->hits[drive->part[i]],
						.lane = (struct lane_count *)from->lane,
						.n_lanes = from->n_lanes,
						.scan = (struct lane_scan *)from->scan,
						.n_scans = from->n_scans,
						.counter = (double *)from->counter };
	}
	return part;
}

static void fill_window(const struct drive *drive, const struct drive_window *window,
			struct sweep_window *win)
{
	const struct drive_step *step = &drive->step;
	bool in_block = drive->exp.open;

	*win = (struct sweep_window){ .stage = step->stage,
				      .arm = step->arm,
				      .target = step->target,
				      .experiment = -1,
				      .block = -1,
				      .dose = step->arm == ARM_OFF ? -1 : 0,
				      .label = -1,
				      .end_ns = window->now_ns,
				      .time_ns = window->time_ns,
				      .items = window->items,
				      .response_sum_ns = NAN,
				      .response_count = NAN };
	if (drive->cfg.response) {
		win->response_sum_ns = window->response_sum_ns;
		win->response_count = window->response_count;
	}
	for (size_t i = 0; i < drive->cfg.n_adjust; i++)
		win->amount[i] = window->amount[i];
	if (in_block) {
		win->experiment = drive->exp.id;
		win->block = drive->exp.slot.block;
		if (step->arm == ARM_DOSE)
			win->dose = dose_number(&drive->exp);
		if (step->arm == ARM_SHAM && win->block >= 0 && drive->exp.plan.is_gate[win->block])
			win->label = drive->exp.slot.column == COLUMN_SHAM2;
		if (step->arm == ARM_DOSE && step->target >= 0)
			win->delay_ns = step->delay_ns[step->target];
	}
	for (size_t i = 0; step->hooked && i < drive->cfg.n_targets; i++)
		if (drive->treated[i])
			win->hits += window->hits[i];
}

static void add_to_series(struct drive *drive, const struct drive_window *window)
{
	struct pilot_window *win;

	drive->series = must_realloc(drive->series, (drive->n_series + 1) * sizeof(*drive->series));
	win = &drive->series[drive->n_series++];
	*win = (struct pilot_window){ .items = window->items,
				      .time_ns = (double)window->time_ns,
				      .changes = window->changes };
	win->t_ns = window->items > 0 ? win->time_ns / win->items : NAN;
	for (size_t i = 0; i < drive->cfg.n_adjust; i++)
		win->c[i] = window->amount[i] /
			    (drive->cfg.adjust_rate[i] ? win->time_ns / 1e9 : win->items);
}

/* A window really takes longer than its set length: the mean over all so far. */
static void count_overhead(struct drive *drive, const struct drive_window *window)
{
	double spent = (double)(window->now_ns - drive->now_ns);
	double over = spent - (double)(drive->step.guard_ns + drive->step.window_ns);

	if (drive->step.timed) /* the caller waited for interpreters */
		return;
	drive->n_windows++;
	drive->overhead_ns += (fmax(0, over) - drive->overhead_ns) / drive->n_windows;
}

/* A source that stands still for a quarter of the budget is dead. */
static bool source_dead(const struct drive *drive)
{
	return !drive->cfg.runs && (double)(drive->now_ns - drive->last_moved_ns) >
					   SHARE_PILOT * (double)drive->cfg.time_ns;
}

static void stage_told(struct drive *drive)
{
	if (source_dead(drive)) {
		drive->dead = true;
		drive_finish(drive);
		return;
	}
	if (drive->stage == STAGE_WARMUP)
		stage_warmup(drive);
	else if (drive->stage == STAGE_PILOT)
		stage_pilot(drive);
	else if (drive->stage == STAGE_OWN && own_next(drive))
		return;
	else if (drive->stage == STAGE_OWN)
		stage_next(drive);
	else if (drive->stage == STAGE_HOLD && !hold_next(drive))
		drive_finish(drive);
	else if (drive->stage == STAGE_HOLD)
		return;
	else
		exp_step(drive);
}

int drive_take(struct drive *drive, const struct drive_window *window, struct sb_err *err)
{
	struct record_row row = { .column = COLUMN_NONE,
				  .busy = window->busy,
				  .since = window->since,
				  .lane = (struct lane_count *)window->lane,
				  .n_lanes = window->n_lanes,
				  .scan = (struct lane_scan *)window->scan,
				  .n_scans = window->n_scans,
				  .counter = (double *)window->counter,
				  .bucket = (struct sweep_bucket *)window->bucket,
				  .n_buckets = window->bucket ? window->n_buckets : 0,
				  .n_parts = drive->n_parts };
	int rc = check_window(drive, window, err);

	if (rc)
		return rc;
	fill_window(drive, window, &row.win);
	if (drive->exp.open) {
		row.column = drive->exp.slot.column;
		row.length = drive->exp.slot.length;
	}
	for (size_t i = 0; drive->step.hooked && i < drive->cfg.n_targets; i++)
		drive->work[i].hits += window->hits[i];
	drive->rounded |= drive->exp.open && !window->exact;
	count_overhead(drive, window);
	drive->now_ns = window->now_ns;
	if (window->items > 0)
		drive->last_moved_ns = window->now_ns;
	row.part = parts_of(drive, window);
	record_add(&drive->rec, &row);
	free(row.part);
	if (drive->step.timed)
		own_take(drive, window);
	if (drive->stage <= STAGE_PILOT)
		add_to_series(drive, window);
	stage_told(drive);
	return 0;
}

void drive_status(const struct drive *drive, struct drive_status *status)
{
	*status = (struct drive_status){ .stage = drive->stage,
					 .target = drive->step.target,
					 .block = drive->step.block,
					 .blocks = drive->step.blocks,
					 .left_s = NAN };
	if (drive->cfg.time_ns)
		status->left_s = fmax(0,
				      ((double)drive->cfg.time_ns - (double)drive->now_ns) / 1e9);
}
