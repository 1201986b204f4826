/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_DRIVE_PRIV_H
#define SWEEP_DRIVE_PRIV_H

#include "drive.h"
#include "escalate.h"
#include "pilot.h"
#include "plan.h"
#include "quantile.h"
#include "record.h"
#include "screen.h"

/*
 * Inside the drive. drive.c takes the results of steps; drive-step.c makes a step; drive-pilot.c is
 * warm-up and pilot, drive-own.c the targets' own time, drive-stage.c decides what is measured
 * after them, drive-main.c the doses and the blocks that targets share, drive-leave.c which of both
 * are still in them, drive-hold.c what comes after them; drive-judged.c has what is judged;
 * drive-adjust.c says what T is adjusted for; drive-exp.c sizes and runs an experiment;
 * drive-plan.c says what is planned; drive-end.c makes the result, with drive-gates.c,
 * drive-shape.c (kappa) and drive-response.c.
 */

/* The doses of one target in an experiment. */
struct exp_member {
	size_t target, first, n_doses;
	size_t first_in, n_in; /* those that take part in the blocks to come; 0: none */
};

/* A set of doses: of one target, of several that share blocks, or of a group delayed as one. */
struct experiment {
	int id;
	enum sweep_stage stage;
	bool grouped; /* each dose delays all members at once */
	struct exp_member *member;
	size_t n_members, n_doses;
	int *owner;	    /* of a dose: index of the member; 0 when grouped */
	uint64_t *delay_ns; /* [dose * n_targets + target] */
	struct plan plan;
	struct plan_slot slot;
	struct sizing size;
	size_t rounds;	/* that are over */
	size_t planned; /* blocks, at the start */
	uint64_t deadline_ns;
	bool open;
};

/* What follows from the course of an experiment. */
struct exp_events {
	void (*begun)(struct drive *drive);	/* the main blocks, before the first */
	void (*between)(struct drive *drive);	/* a round is over */
	bool (*restarted)(struct drive *drive); /* it begins again, with a longer guard */
	void (*over)(struct drive *drive);	/* all windows are over */
};
extern const struct exp_events stage_events;

/* What is hidden in windows is delayed for longer, target by target: drive-hold.c. */
struct hold {
	uint64_t from_ns; /* the main blocks begin */
	bool planned;
	size_t *target, n_targets, n_done;
	size_t delayed, after, at; /* windows of one: with the delay, without, and of these both */
	struct sizing size;
	int experiment; /* the first windows of each; the last are of the next one */
};

/* So many of the last windows, with the delay and without, are judged. */
static inline size_t hold_judged(const struct hold *hold)
{
	size_t a = hold->delayed / 3, b = hold->after - 1;

	return a < b ? a : b;
}

enum work_state { WORK_OPEN, WORK_DONE, WORK_SCREENED, WORK_SKIPPED };

/* Of all probes' blocks: sums of the injected time per item and of the contrast of T, a throughput.
 */
struct throughput {
	double xx, xt, tt, n;
};

/* The state of one target. */
struct work {
	char *spec;
	enum work_state state;
	int experiment; /* its main blocks; -1: none */
	int hold;	/* the first of its two experiments; -1: none */
	size_t first, n_doses;
	size_t last; /* with a slack: number of the only dose of the last blocks, from 1; 0 none */
	uint64_t last_ns; /* ... and its delay in these */
	struct escalate esc;
	struct throughput throughput; /* with a response */
	uint64_t dose_ns[DRIVE_DOSES];
	uint64_t hits;
	double felt;  /* hits per item that are delayed, as a lane feels them */
	double bound; /* of the kappa of a screened target */
	double window_ns;
	struct sweep_estimate own_ns; /* per item, of all lanes together */
	double needed_ns;
	struct carry carry; /* of its experiment, at the end; not of whole runs */
	char own_why[SWEEP_REASON], reason[SWEEP_REASON];
	struct sweep_remedy remedy;
};

struct drive {
	struct drive_cfg cfg;
	uint64_t *dose_ns;
	struct rng rng; /* of the design; the analysis has one of its own */
	struct record rec;
	struct lane_count *window_lane;
	int (*lane_key)[3]; /* role, pid, tid */
	struct work *work;
	bool *treated; /* in this step */
	bool *alone;  /* of 2 n_targets - 1 the one in the middle: the flags of each target alone */
	size_t *part; /* the targets that share this step's window, n_parts of them */
	size_t n_parts;
	/*
	 * No delay, for each target. Where each Nth hit is delayed, the others take the same way as
	 * far as their count, which costs more than a hit that is never delayed: 1 ns then.
	 */
	uint64_t *zero_ns;

	enum sweep_stage stage;
	struct drive_step step;
	enum sweep_arm last_arm; /* in force; ARM_COUNT: none yet */
	int last_dose, last_experiment;
	uint64_t now_ns, last_moved_ns;
	double overhead_ns, n_windows; /* per window, beyond guard and window: switching, reading */
	bool done, dead;
	bool rounded;			/* a window of a block was not exact */
	double window_ns, exp_guard_ns; /* of the last experiment */

	struct sweep_adjust adjust[SWEEP_ADJUST]; /* of the last drive_adjust() */

	struct pilot_window *series;
	size_t n_series;
	uint64_t unit_ns;
	struct pilot pilot;
	bool unsettled;

	struct own_window *own; /* windows in which calls were timed, n_targets of them each */
	size_t n_own, own_asked;

	const struct exp_events *events;
	struct experiment exp;
	int n_experiments;
	int control_experiment;	  /* -1 none yet */
	bool screening, screened; /* in progress; over, or not needed */
	uint64_t guard_ns;	  /* 0: chosen by the sizing */
	int guard_raised, first_probe;
	uint64_t screen_deadline_ns;
	struct screen screen;
	size_t *order; /* of the targets: survivors of the screening, strongest first */
	size_t n_order;
	struct sweep_plan plan; /* of the main blocks; no targets: none yet */
	struct hold hold;
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

/*
 * drive-hold.c. hold_plan(): main blocks begin. hold_due(): a round is over; true: the main blocks
 * end here. hold_next(): sets the next step; false: there is no more. hold_fill(): after kappa and
 * slack.
 */
void hold_plan(struct drive *drive);
bool hold_due(struct drive *drive);
bool hold_next(struct drive *drive);
void hold_fill(const struct drive *drive, size_t index, struct sweep_target *target);

/* Each sets drive->step, or drive->done. */
void stage_first(struct drive *drive);
void stage_warmup(struct drive *drive);
void stage_pilot(struct drive *drive);
void stage_next(struct drive *drive); /* the pilot or an experiment is over */

/* drive-main.c; main_between(): drive-leave.c */
void main_enter(struct drive *drive);	     /* measures all targets that are left */
void main_probed(struct drive *drive);	     /* doses were probed */
void main_between(struct drive *drive);	     /* a round is over */
bool main_restarted(struct drive *drive);    /* with a longer guard, where an arm carries over */
size_t main_left(const struct drive *drive); /* how many targets are called and have no verdict */

/* The time for eight blocks of that many targets, a dose each. */
double main_needed_ns(const struct drive *drive, size_t n_targets);

/*
 * drive-exp.c. In order: exp_open(), exp_add() and exp_dose() for each member, exp_groups(),
 * exp_size() with the plan, exp_start(). A step is set by exp_start() and exp_step().
 */
double left_ns(const struct drive *drive); /* of the budget; INFINITY without one */
uint64_t delay_of(const struct drive *drive, size_t target, double x_ns); /* of a hit */
bool exp_any(const struct drive *drive); /* some target has main blocks */
void exp_open(struct drive *drive, enum sweep_stage stage, bool grouped);
void exp_add(struct drive *drive, size_t target, size_t n_doses);
void exp_dose(struct drive *drive, size_t dose, size_t target, uint64_t delay_ns);
void exp_close(struct drive *drive);

/* Members that take part, in groups that share blocks; the caller frees group. */
struct plan_cfg exp_groups(const struct drive *drive);
/* The same for so many targets of so many doses each. */
struct plan_cfg exp_groups_of(const struct drive *drive, size_t n_targets, size_t n_doses);

/* blocks 0: as many as are of use; time_ns: the whole sweep's. */
void exp_size_for(const struct drive *drive, double time_ns, double budget_ns,
		  const struct plan_cfg *plan, bool gates, size_t blocks, struct sizing *size);
void exp_size(const struct drive *drive, double budget_ns, const struct plan_cfg *plan, bool gates,
	      size_t blocks, struct sizing *size);
void exp_start(struct drive *drive, struct plan_cfg *plan, const struct sizing *size,
	       double budget_ns);
void exp_step(struct drive *drive);				  /* a window of it is over */
void exp_window(struct drive *drive);				  /* sets the step of exp.slot */
double exp_windows_ns(const struct drive *drive, size_t windows); /* the time they take */

/* drive-judged.c: the cells of what is judged, in the place of record_data(). */
struct judged {
	struct infer_data data; /* borrowed from one of the others */
	struct infer_data mean;
	bool quantile;
	struct quantile_of of;
};
void judged_open(const struct drive *drive, const struct record_of *of,
		 const struct record_view *view, struct judged *out, double *lanes);
/* infer_kappa(), with the interval that the buckets allow; that alone for an estimate by data. */
void judged_infer(const struct judged *judged, struct rng *rng, struct infer_kappa *kappa);
void judged_widen(const struct judged *judged, struct sweep_estimate *kappa);
void judged_close(struct judged *judged);

/* drive-gates.c: of all windows so far. */
void drive_gates(const struct drive *drive, struct rng *rng, struct sweep_gates *gates);

/* drive-shape.c: kappa, its tests and the slack; then, of a response, the queue. */
void drive_slack(const struct drive *drive, const struct work *work, const struct judged *judged,
		 struct rng *rng, struct sweep_target *target);
void drive_shape(const struct drive *drive, const struct judged *judged, struct rng *rng,
		 struct sweep_target *target, size_t index);
/* kappa of the throughput, of a target whose response was judged. */
struct sweep_estimate drive_throughput(const struct drive *drive, size_t target);

/*
 * drive-response.c. The injected time per item, ns, that leaves a queue steady by Little's law in
 * the pilot: a third of the idle time of as many servers as there are lanes. INFINITY: unknown.
 */
double drive_response_safe_ns(const struct drive *drive, size_t target);
/* A probe of x ns per item is over, after escalate_tell(): which doses leave the queue steady? */
void drive_response_probed(struct drive *drive, const struct record_of *of, double x);

/* After kappa and the doses. */
void drive_quantiles(const struct drive *drive, const struct record_of *of,
		     const struct judged *judged, struct sweep_target *target);
void drive_queue(const struct drive *drive, const struct record_of *of,
		 const struct sweep_gates *gates, struct sweep_target *target);

/* The windows that a target's kappa is from: with all its doses; with that of the last blocks. */
struct record_of work_of(const struct drive *drive, size_t target);
struct record_of work_last(const struct drive *drive, size_t target);

/* drive-adjust.c: fits what T is adjusted for, anew, to all windows so far. */
void drive_adjust(struct drive *drive);

/* drive-plan.c: fills drive->plan from the experiment. */
void plan_fill(struct drive *drive);

#define CLOSED 0.5 /* kappa of the throughput: of at least that, the loop is closed */

#define SHARE_USED 0.96 /* of the remaining time: the switching takes time too */

#define SHARE_PILOT 0.25 /* of the budget: the longest standstill of a source */

void drive_finish(struct drive *drive);

/*
 * The largest injected time per item, as a share of the time per item: --max-slowdown; of a
 * response at most a third of the time in which the busiest thread is idle, so that the queue stays
 * steady.
 */
double drive_bound(const struct drive *drive);

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

/* Of a target's hits in the windows of an experiment (-1: of all so far) the share that one lane
 * feels. Windows that do not tell it from others have the lanes of all. */
double drive_share(const struct drive *drive, int experiment, size_t target);

/* The target of a dose of the experiment; -1: of several. */
int drive_owner(const struct drive *drive, int dose);

/* Sets a step in an arm; dose -1 in SHAM and OFF. */
void drive_set_step(struct drive *drive, enum sweep_arm arm, int dose, uint64_t guard_ns,
		    uint64_t window_ns);

#endif
