/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_DRIVE_H
#define SWEEP_DRIVE_H

#include "lane.h"
#include "result.h"
#include "src/base/err.h"

/*
 * A sweep from the first window to the verdicts, as a machine without hands: it returns the next
 * step and takes the results of the last. Live mode, command mode and the simulations of the tests
 * use the same machine, so that the simulations test what runs.
 *
 *	drive_open(&cfg, &drive, &err);
 *	lane = drive_lane(drive, "EngineCore", pid, tid);	as they are seen
 *	for (;;) {
 *		drive_next(drive, &step);
 *		if (step.what == DRIVE_DONE)
 *			break;
 *		set every target to step.delay_ns, or switch all hooks off if !step.hooked;
 *		wait step.guard_ns;			what is in the pipeline leaves it
 *		read the counters; wait step.window_ns; read them again;
 *		drive_take(drive, &window);		the differences
 *	}
 *	res = drive_end(drive);		at any time: from the data so far
 *	drive_close(drive);
 *
 * Order of events: warm-up, pilot, [own time], [control], [screening], [escalation], main blocks
 * with gates. All targets are escalated and measured side by side, in blocks that a few of them
 * share: one SHAM and the doses of each. The caller's clock (window.now_ns) determines the spent
 * budget: stages are cut to fit, and where they do not fit the result contains the time that is
 * needed.
 *
 * A window of SHAM may serve several targets: then drive_parts() are due, each as the window's own
 * lanes, scans and counters, but of that one target's threads.
 *
 * All randomness comes from cfg.seed: the same results give the same steps.
 *
 * Windows should begin and end at a change of the progress source where it changes slowly (a
 * counter published every 100 ms): window.time_ns is then the time between those changes. A caller
 * that cannot do that passes the number of changes of the source, and windows are made long enough.
 *
 * Report each window as it was: none is discarded for being slow. If the target is gone, call
 * drive_end() instead of drive_take().
 *
 * Ownership: the configuration is copied. step's pointers are valid until the next call. Memory:
 * aborts without. Not thread-safe.
 */
#define DRIVE_NONE ((size_t)-1)

struct drive_cfg {
	uint64_t seed;
	size_t n_targets;
	const char *const *spec;
	size_t control;		 /* index of the positive control (the progress function), or
				  * DRIVE_NONE; measured first. It has no row in the result */
	bool control_too;	 /* ... unless it is also a target of its own */
	bool control_auto;	 /* only where no thread is always busy, to recognize an open loop;
				  * then it is no gate */
	const uint64_t *dose_ns; /* per hit, each >= 1; NULL: escalate */
	size_t n_doses;		 /* at most DRIVE_DOSES */
	uint64_t floor_ns;	 /* smallest exact delay; escalation does not go below */
	double max_slowdown;	 /* 0.30: bound of x / T0 and of T / T0 - 1 */
	double threshold;	 /* 0.1: a smaller kappa counts as none */
	bool runs;		 /* a window is a whole run: no warm-up, no guard */
	unsigned int n_runs;	 /* runs of each arm */
	uint64_t time_ns;	 /* budget; 0 with runs: no limit */
	uint64_t guard_ns;	 /* 0: chosen from depth_items, the source's period and T, and
				  * raised to what a delay takes to be felt (record_carry()) */
	double depth_items;	 /* items in the pipeline at once, 0 unknown */
	bool aligned;		 /* windows begin and end at changes of the source: no rounding */
	bool response;		 /* kappa is that of response_sum / response_count ... */
	double quantile;	 /* ... or of this quantile of the responses; 0: of their mean */
	enum lane_mode lane_mode;
	const uint64_t *every; /* each Nth hit is delayed, one per target; NULL or 0: each */
	const bool *can_time;  /* whose calls can be timed, one per target; NULL: none */
	size_t n_counters;     /* of window.counter, on each side */
	size_t n_adjust;       /* of window.amount, at most SWEEP_ADJUST; not with runs */
	bool adjust_rate[SWEEP_ADJUST]; /* that amount counts per second; else per item */
};
#define DRIVE_DOSES 16

/* The defaults in the comments above. */
struct drive_cfg drive_defaults(void);

enum drive_what { DRIVE_WINDOW, DRIVE_DONE };

struct drive_step {
	enum drive_what what;
	enum sweep_stage stage;
	enum sweep_arm arm;
	bool hooked;		  /* false: all hooks off */
	bool timed;		  /* time the calls that can be timed, into window.own */
	const uint64_t *delay_ns; /* one per target; meaningful when hooked */
	uint64_t guard_ns;	  /* after the change of arm; 0 where nothing changes */
	uint64_t window_ns;	  /* 0: a whole run */
	int target;		  /* treated in this step, -1 none or several */
	int block, blocks;	  /* done and planned, of this experiment; 0 of 0 outside blocks */
};

/* The time of a target's calls in a window, from entry to return, all processes together. */
struct drive_own {
	double ns, calls, missed; /* missed: calls that were not timed */
};

/* What a window has of one target: see the same names in struct drive_window. */
struct drive_part {
	const struct lane_count *lane;
	size_t n_lanes;
	const struct lane_scan *scan;
	size_t n_scans;
	const double *counter;
};

struct drive_window {
	uint64_t now_ns;  /* since drive_open(), at the window's end; never falls */
	uint64_t time_ns; /* length of the window, without the guard; > 0 */
	double items;	  /* in the window, >= 0 */
	double response_sum_ns, response_count;
	double since; /* responses (without a source: items) since the end of the window before, its
		       * guard and changes included; 0: unknown */
	const struct sweep_bucket *bucket; /* of these responses, rising; NULL: unknown */
	size_t n_buckets;
	uint64_t changes;	       /* of the source seen within it; 0: not watched, or many */
	const uint64_t *hits;	       /* one per target; ignored in OFF */
	const struct lane_count *lane; /* one per drive_lane(): of all drive_treated() targets */
	size_t n_lanes;
	const struct lane_scan *scan; /* one per drive_role(): of threads that were hit */
	size_t n_scans;
	const struct drive_own *own; /* one per target, in a timed step; NULL: unknown */
	bool exact;  /* it began and ended right after an item: there is no rounding */
	double busy; /* share of the window that the busiest thread ran on a CPU; NAN unknown. Of
		      * SHAM; with a response source of all */
	const double *counter; /* [side * n_counters + counter], their growth in the window, where
				* SIDE_DELAYED is the threads that call drive_treated(); NAN:
				* unknown. NULL: they were not read */
	double amount[SWEEP_ADJUST];   /* growth of the covariates' sources, of which T is adjusted
					* for (adjust.h) */
	const struct drive_part *part; /* one per drive_parts(); NULL: each as the window */
	size_t n_parts;
};

struct drive;

/*
 * SB_EUSAGE: no target, a dose of 0, too many doses, less than 2 runs, no time, a control that is
 * no target, a share out of range, covariates of whole runs.
 */
int drive_open(const struct drive_cfg *cfg, struct drive **out, struct sb_err *err);
void drive_close(struct drive *drive);

size_t drive_targets(const struct drive *drive); /* how many */

/* The index of a role in window.scan. */
size_t drive_role(struct drive *drive, const char *role);

/* The index of a thread's counters in window.lane; the same triple gives the same index. */
size_t drive_lane(struct drive *drive, const char *role, int pid, int tid);

/* Which targets window.lane must sum up in the step that is due: one flag per target. */
const bool *drive_treated(const struct drive *drive);

/* How many targets share the step's window; 0: window.lane is all. The flags of one of them. */
size_t drive_parts(const struct drive *drive);
const bool *drive_part_treated(const struct drive *drive, size_t part);

/* What the main blocks will be; NULL before they begin. It changes with the guard, and is valid
 * until the next drive_take(). */
const struct sweep_plan *drive_plan(const struct drive *drive);

void drive_next(struct drive *drive, struct drive_step *step);

/*
 * Reports the result of a step. SB_EUSAGE when it is impossible (items below 0, time 0, a clock
 * that went back); then nothing of it is kept and the same step is due again.
 */
int drive_take(struct drive *drive, const struct drive_window *window, struct sb_err *err);

/* Sets why a target's calls cannot be timed. */
void drive_own_why(struct drive *drive, size_t target, const char *why);

/* For the terminal: the progress. kappas so far: NAN where unknown. */
struct drive_status {
	enum sweep_stage stage;
	int target, block, blocks;
	double left_s; /* of the budget; NAN without one */
};
void drive_status(const struct drive *drive, struct drive_status *status);
struct sweep_estimate drive_kappa(const struct drive *drive, size_t target);

/* The source has moved, and each target was called. */
bool drive_all_seen(const struct drive *drive);

/* The result so far; may be called more than once. */
struct sweep_result *drive_end(struct drive *drive);

#endif
