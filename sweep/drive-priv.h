/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_DRIVE_PRIV_H
#define SWEEP_DRIVE_PRIV_H

#include "drive.h"
#include "escalate.h"
#include "pilot.h"
#include "plan.h"
#include "record.h"
#include "screen.h"

/*
 * Inside the drive. drive.c takes the results of steps; drive-step.c makes a step; drive-pilot.c is
 * warm-up and pilot, drive-own.c the targets' own time, drive-stage.c decides what is measured
 * after them; drive-end.c makes the result.
 */

/* One set of doses, of one target or a group. */
struct experiment {
	int id, target; /* target -1: a group */
	enum sweep_stage stage;
	size_t n_doses;
	uint64_t *delay_ns; /* [dose * n_targets + target] */
	struct plan plan;
	struct plan_slot slot;
	struct sizing size;
	uint64_t deadline_ns;
	bool open;
};

enum work_state { WORK_OPEN, WORK_DONE, WORK_SCREENED, WORK_SKIPPED };

/* The state of one target. */
struct work {
	char *spec;
	enum work_state state;
	int experiment; /* its main blocks; -1: none */
	size_t n_doses;
	uint64_t dose_ns[DRIVE_DOSES];
	uint64_t hits;
	double felt;  /* hits per item as a lane feels them */
	double share; /* ... of all of them */
	double bound; /* of the kappa of a screened target */
	double window_ns;
	struct sweep_estimate own_ns; /* per item, as a lane spends it */
	double needed_ns;
	char own_why[SWEEP_REASON], reason[SWEEP_REASON];
};

struct drive {
	struct drive_cfg cfg;
	uint64_t *dose_ns;
	struct rng rng; /* of the design; the analysis has one of its own */
	struct record rec;
	struct lane_count *window_lane;
	int (*lane_key)[3]; /* role, pid, tid */
	struct work *work;
	bool *treated;
	uint64_t *zero_ns; /* no delay, for every target */

	enum sweep_stage stage;
	struct drive_step step;
	enum sweep_arm last_arm; /* in force; ARM_COUNT: none yet */
	int last_dose, last_experiment;
	uint64_t now_ns, last_moved_ns;
	double overhead_ns, n_windows; /* per window, beyond guard and window: switching, reading */
	bool done, dead;
	bool rounded;			/* a window of a block was not exact */
	double window_ns, exp_guard_ns; /* of the last experiment */

	struct pilot_window *series;
	size_t n_series;
	uint64_t unit_ns;
	struct pilot pilot;
	bool unsettled;

	struct own_window *own; /* windows in which calls were timed, n_targets of them each */
	size_t n_own, own_asked;

	struct experiment exp;
	int n_experiments;
	int control_experiment; /* -1 none yet */
	struct escalate esc;
	bool screening, screened; /* in progress; over, or not needed */
	uint64_t guard_ns;	  /* 0: chosen by the sizing */
	int guard_raised, first_probe;
	uint64_t screen_deadline_ns;
	struct screen screen;
	size_t *order; /* of the targets: survivors of the screening, strongest first */
	size_t n_order;
};

/* The timed calls of a target, and the items (with a response source: its events) of the same
 * windows. */
struct own_window {
	double items;
	struct drive_own own;
};

/* drive-own.c: takes the results of a timed step. False: no further step is needed. */
bool own_begin(struct drive *drive);
bool own_next(struct drive *drive);
void own_take(struct drive *drive, const struct drive_window *window);
void own_study(struct drive *drive); /* computes own times from all results */

/* Each sets drive->step, or drive->done. */
void stage_first(struct drive *drive);
void stage_warmup(struct drive *drive);
void stage_pilot(struct drive *drive);
void stage_next(struct drive *drive); /* the pilot or an experiment is over */
void stage_step(struct drive *drive); /* a window of an experiment is over */

#define CARRY_T	    3.0	 /* of record_carry(): the guard is too short */
#define SHARE_PILOT 0.25 /* of the budget: the longest standstill of a source */

void drive_finish(struct drive *drive);

/* Share of a CPU of the busiest thread in SHAM so far; NAN unknown. */
double drive_busiest(const struct drive *drive);
bool drive_has_row(const struct drive *drive, size_t target); /* in the result */

/* The largest dither of a window of that dose; 0 where many items fit into it. */
double drive_item_dither(const struct drive *drive, int dose, uint64_t window_ns);

/*
 * The same before the windows are sized: of the largest given dose, for the remaining target with
 * the most hits.
 */
double drive_given_dither(const struct drive *drive, double budget_ns);

/* Sets a step in an arm; dose -1 in SHAM and OFF. */
void drive_set_step(struct drive *drive, enum sweep_arm arm, int dose, uint64_t guard_ns,
		    uint64_t window_ns);

#endif
