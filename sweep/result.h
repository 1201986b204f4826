/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_RESULT_H
#define SWEEP_RESULT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The findings of a sweep, in plain data: filled by drive_end(), read by the writers. It is the
 * document of schema "sbinject.sweep/1" as a struct; a field here has the JSON's name.
 *
 * Terms. An *item* is the unit that the progress source counts. T is time per item, x is injected
 * time per item (lane.h defines how lanes are combined), both measured, in ns; with a response
 * source T is the mean response and x is per response. kappa = dT/dx: 1 the
 * delay reaches the end in full, 0 it is hidden, above 1 it is amplified. An *arm* is a setting of
 * the hooks, a *window* a stretch of time (or a whole run) in one arm, a *block* a set of windows
 * close in time in which every arm occurs equally often.
 *
 * Unknown is NAN, with a reason beside it; unbounded is INFINITY; never 0. Both are null in JSON.
 * Owned by the caller of drive_end(); sweep_result_free() frees everything below.
 */
struct sweep_estimate {
	double est, lo, hi; /* lo and hi: the 95 % interval */
};

#define SWEEP_UNKNOWN ((struct sweep_estimate){ NAN, NAN, NAN })
#define SWEEP_REASON  192

enum sweep_arm {
	ARM_OFF,  /* hooks switched off: nothing is counted, nothing delayed */
	ARM_SHAM, /* hooked, counted, 0 ns */
	ARM_DOSE,
	ARM_COUNT
};

enum sweep_stage {
	STAGE_WARMUP,	/* until T shows no trend */
	STAGE_PILOT,	/* noise, autocorrelation, update period of the source */
	STAGE_OWN,	/* how long the targets' own calls take, with no delay */
	STAGE_CONTROL,	/* the progress function itself is delayed: kappa must be 1 */
	STAGE_SCREEN,	/* groups of targets */
	STAGE_ESCALATE, /* doses doubled until a response is seen */
	STAGE_MAIN,	/* the blocks that the estimate comes from */
	STAGE_HOLD,	/* what is hidden in them is delayed for longer */
	STAGE_COUNT
};

enum sweep_verdict {
	VERDICT_CRITICAL,
	VERDICT_PARTIAL,
	VERDICT_HIDDEN,
	VERDICT_SLACK, /* hidden up to a slack, felt beyond */
	VERDICT_INCONCLUSIVE,
	VERDICT_NOT_CALLED,
	VERDICT_INVALID,
	VERDICT_COUNT
};

enum sweep_slack_kind {
	SLACK_UNKNOWN, /* not enough data; see slack_reason */
	SLACK_NONE,    /* the straight line is sufficient; hi bounds an unseen slack */
	SLACK_FOUND,   /* est and interval */
	SLACK_BRACKET, /* fewer than two doses above it: lo and hi, est unknown */
	SLACK_BEYOND,  /* no response up to the largest dose: lo is its x, hi unbounded */
	SLACK_COUNT
};

enum sweep_load {
	LOAD_UNKNOWN,
	LOAD_CLOSED, /* time per item follows the work: the program itself is measured */
	LOAD_OPEN,   /* throughput is pinned at the rate of arrivals: it would show 0 falsely */
	LOAD_COUNT
};

/* One dose of a target's main blocks. T and x as means over blocks; for the plot of T against x. */
struct sweep_dose {
	uint64_t delay_ns; /* set, per hit */
	double x_ns;
	struct sweep_estimate t_ns;	/* level: T0 of SHAM plus the contrast to it */
	struct sweep_estimate delta_ns; /* contrast to SHAM within blocks */
	double hits_per_item;
};

/* A part of the injected time, shown apart: a role's, or with every thread a lane. */
struct sweep_part {
	char *name;		     /* "role EngineCore", "by thread" */
	double lanes;		     /* side by side */
	double x_ns;		     /* at the largest dose */
	struct sweep_estimate kappa; /* as if this part alone were the injected time */
};

/* A bucket of a histogram of responses: how many were longer than lo and at most as long as hi. */
struct sweep_bucket {
	double lo_ns, hi_ns, n; /* hi_ns INFINITY: no bound */
};

/* A quantile of the response, over all blocks; quantile.h says what its buckets do to it. */
enum { SWEEP_QUANTILES = 3 };
struct sweep_quantile {
	double share; /* 0.5, 0.9, 0.99 */
	struct sweep_estimate sham_ns;
	double dose_ns; /* at the largest dose */
	/* est is NAN where the bucket does not resolve the change; the interval allows for it. */
	struct sweep_estimate delta_ns; /* the largest dose less SHAM */
	struct sweep_estimate slope;	/* for each ns injected in a response, over all doses */
	double bucket_ns[2][2];		/* bounds of the bucket that holds it: SHAM, largest dose */
	bool unresolved;		/* the buckets are too wide for the change */
	double bound_ns;		/* a bound near it ... */
	double slower;			/* ... and the share of responses beyond, in SHAM */
	struct sweep_estimate slower_delta; /* the largest dose less SHAM */
	char reason[SWEEP_REASON];	    /* why it, or its change, is unknown */
};

/* The queue of a response, by queue.h; NAN where unknown. */
struct sweep_queue {
	double in_system,
		in_system_dose; /* by Little's law: requests, in SHAM, at the largest dose */
	double completed_s, completed_s_dose; /* completions a second */
	double utilisation, utilisation_dose; /* of the busiest thread */
	double delta_aicc; /* AICc of a line less that of a queue: > 0 favours the queue */
	bool shaped;	   /* kappa is the slope of the queue's shape at no delay */
	double most_ns;	   /* injected in a response: where that shape saturates */
	bool saturated;	   /* it is not steady in the windows: there is no response to judge */
	char reason[SWEEP_REASON];
};

/* The largest delay for many windows in a row, of a target that seems hidden: see drive-hold.c. */
struct sweep_hold {
	double time_s;			/* of these windows; NAN: there were none */
	double x_ns;			/* injected per item, at the end of them ... */
	struct sweep_estimate delta_ns; /* ... and what an item took longer then */
	bool late; /* that is more than the blocks, with their windows, have shown */
};

/* Do its calls keep up with the items under a delay? See behind.h. */
struct sweep_calls {
	size_t arm;		      /* dose[arm]; 0: unknown */
	struct sweep_estimate behind; /* the share of the delay that the items do not feel yet */
	struct sweep_estimate kappa;  /* felt in the end, if an item needs as many calls then */
	bool ahead;		      /* work done ahead may hide the delay until it is used up */
};

/*
 * What would decide a verdict that is open, in words of the command line: "--guard", "3s"; "every",
 * "16" is a key of the target. Of "--lane" only the user knows the value.
 */
struct sweep_remedy {
	const char *option; /* NULL: none, or more --time alone; static */
	char value[64];	    /* "": the option has none, or it is not known */
	bool longer;	    /* with more --time, too */
};

struct sweep_target {
	char *spec;
	struct sweep_estimate kappa;	    /* slope at no delay: the verdict is based on it */
	struct sweep_estimate kappa_beyond; /* slope beyond the slack; unknown without one */
	const char *method;		    /* "t", "bootstrap-t"; static */
	double kappa_se, df;
	bool tested;			    /* hits were looked for */
	size_t blocks, lost;		    /* lost: blocks without items */
	double p_none;			    /* t test of "kappa is 0", two-sided */
	double p_felt;			    /* t test of "kappa is the threshold or more" */
	double p_random;		    /* randomisation test of "no effect", two-sided */
	double p_adjusted;		    /* the verdict's test after Holm's correction */
	struct sweep_estimate kappa_robust; /* Hodges-Lehmann, Wilcoxon interval */
	bool robust_agrees;
	double mde; /* smallest kappa that this run would have seen, 5 % level, 80 % power */
	enum sweep_slack_kind slack_kind;
	struct sweep_estimate slack_ns; /* in x: injected time per item */
	double last_delay_ns; /* of a hit, just below the slack: the only dose of the last blocks;
			       * NAN: all blocks have all doses */
	char slack_reason[SWEEP_REASON];
	double delta_aicc; /* AICc of the line minus AICc of the hinge: > 0 favours the slack */
	struct sweep_estimate inclusive_ns;    /* its own time per item, as a lane spends it */
	char inclusive_reason[SWEEP_REASON];   /* why it is unknown */
	struct sweep_estimate gain_ceiling_ns; /* kappa x own time per item */
	char gain_reason[SWEEP_REASON];	       /* why it is unknown */
	double t0_ns;			       /* time per item in SHAM */
	double plain_ns;      /* ... less gates.sham_ns, if that is shown to be above 0 */
	uint64_t hits;	      /* in all windows */
	double hits_per_item; /* in SHAM */
	struct sweep_estimate hits_change; /* at the largest dose against SHAM: ratio - 1 */
	bool hits_differ;		   /* a poller absorbs the delay, or the work changed */
	struct sweep_calls calls;
	double dose_given; /* hits under a dose: given over set, interruptions left out; NAN */
	struct sweep_dose *dose; /* dose[0] is SHAM with delay 0 */
	size_t n_doses;		 /* SHAM included */
	struct sweep_quantile quantile[SWEEP_QUANTILES];
	size_t n_quantiles;	    /* 0: without a response source */
	struct sweep_quantile mean; /* of the response; its intervals of sham_ns are unknown */
	const struct sweep_quantile *judged; /* the quantile that kappa is of; NULL: the mean */
	struct sweep_queue queue;	     /* with a response source */
	struct sweep_change *change;	  /* of the counters: [side * n_counters + counter]; NULL */
	double lanes;			  /* side by side: the mean number, 1 or more */
	bool lanes_unclear;		  /* ... and it may be another */
	struct sweep_estimate range[2];	  /* kappa with the fewest and with the most lanes */
	struct sweep_estimate unadjusted; /* kappa as it is without adjusting; unknown where
					   * nothing was adjusted for */
	double adjusted_width;		  /* of kappa's interval, by that of the unadjusted one */
	struct sweep_part *part;
	size_t n_parts;
	double settle_s; /* a delay comes to be felt as 1 - exp(-t / settle_s); 0: at once, as far
			  * as was seen; NAN: unknown */
	struct sweep_hold hold;
	bool screened; /* judged in a group only */
	enum sweep_verdict verdict;
	char reason[SWEEP_REASON];
	struct sweep_remedy remedy;
};

/*
 * Counters beside the progress: what the machine did meanwhile. Here they are numbers in a fixed
 * order, whose names the caller knows. They are sums over the threads of a side.
 */
enum sweep_side {
	SIDE_DELAYED, /* threads that call a treated target; averaged over lanes, as x is */
	SIDE_OTHERS,  /* all others, together */
	SIDE_COUNT
};

/* What a delay changed of one counter: per item, in SHAM and at the largest dose. */
struct sweep_change {
	double sham, dose;
	struct sweep_estimate delta; /* dose - sham */
	struct sweep_estimate slope; /* per ns injected, by the inference of kappa */
	double p_none, p_random;     /* of "no effect"; NAN: unknown, or 0 in every cell */
	double p_adjusted;	     /* p_none after Holm's correction over all changes */
	bool significant;	     /* p_adjusted and p_random below 5 %, and A/A agreed */
};

/* A covariate that was to be taken out of T, by adjust.h. */
enum { SWEEP_ADJUST = 4 };
struct sweep_adjust {
	bool rate; /* per second; else per item, or response, as T */
	bool used;
	double mean;		     /* over the blocks */
	struct sweep_estimate slope; /* ns of T for each of it */
	bool moved;		     /* a delay changes it ... */
	int moved_target;	     /* ... that of this target, -1: of the progress function */
	double moved_share, moved_p; /* by so much at the largest dose */
	char reason[SWEEP_REASON];   /* why it was not used */
};

struct sweep_gates {
	struct sweep_estimate aa; /* A/A contrast as a share of T: must hold 0 */
	double aa_p;
	bool aa_known, unproven;	/* unproven: A and A differed, no result is proven */
	struct sweep_estimate sham_ns;	/* SHAM - OFF, per item: the tool's own cost */
	struct sweep_estimate control;	/* kappa of the positive control */
	bool control_asked, control_ok; /* ok: its interval holds 1 */
	double carry_t;			/* is a delay felt in the next window? NAN: not tested */
	bool carry_over;		/* it is: the guard is too short */
	bool idle;			/* no thread was always busy */
	bool queue_grows;		/* requests came faster than they were completed */
	bool pinned;			/* throughput stood still while a response grew */
	enum sweep_load load;
	char load_reason[SWEEP_REASON];
	double lanes; /* the most of a target */
	size_t roles;
	const char *lane_mode; /* "auto", "process", "thread", "all"; static */
};

/* What the main blocks were to be, before the first of them. */
struct sweep_planned {
	int target; /* as in sweep_window */
	uint64_t *delay_ns;
	size_t n_doses;
	double half_width; /* of kappa, as expected from the noise of the pilot; NAN unknown */
};

struct sweep_plan {
	struct sweep_planned *target;
	size_t n_targets;	  /* 0: there was none */
	size_t groups;		  /* of targets that share blocks */
	size_t blocks;		  /* of a target */
	size_t gates;		  /* blocks without delay */
	size_t windows;		  /* in all */
	double window_s, guard_s; /* NAN with whole runs */
	double time_s;		  /* for all of it; NAN unknown */
};

/* One window as it was reported, for the CSV and the plot over time. */
struct sweep_window {
	enum sweep_stage stage;
	enum sweep_arm arm;
	int target;	   /* the target treated; -1: none, several, or the control */
	int experiment;	   /* counted from 0; windows of one share a set of doses; -1 none */
	int block;	   /* within the experiment, -1 none */
	int dose;	   /* index into its doses, 0 is SHAM, -1 in OFF */
	int label;	   /* 0 or 1: which A of an A/A block; -1 elsewhere */
	uint64_t delay_ns; /* set for the treated target, 0 in a group */
	uint64_t end_ns;   /* since the sweep began */
	uint64_t time_ns;
	double items;
	double response_sum_ns, response_count; /* NAN without --response */
	uint64_t hits;				/* of the treated targets, all lanes */
	double x_total_ns;			/* injected in this window, lanes together */
	double t_ns, x_ns, hits_per_item;	/* per item; NAN without items */
	double *counter;			/* [side * n_counters + counter]; NULL: not read */
	double amount[SWEEP_ADJUST];		/* growth of the covariates' sources */
};

struct sweep_result {
	uint64_t seed;
	double threshold;
	bool runs;		  /* a window was a whole run of the command */
	bool ended_early;	  /* drive_end() before DRIVE_DONE */
	bool dead_source;	  /* progress did not move */
	double time_s;		  /* spent */
	double time_needed_s;	  /* for the request, when the budget was too small; else NAN */
	double period_ns;	  /* update period of the source; NAN: not seen */
	double window_s;	  /* as sized, of the last experiment */
	double autocorrelation_s; /* integrated autocorrelation time of the pilot */
	struct sweep_gates gates;
	struct sweep_plan plan;
	struct sweep_target *target;
	size_t n_targets;
	struct sweep_window *window;
	size_t n_windows;
	struct sweep_adjust adjust[SWEEP_ADJUST];
	size_t n_adjust;	 /* covariates; 0: none were given */
	double adjust_explained; /* share of the variance of T within blocks */
	size_t n_counters;	 /* on each side; 0: none were read */
	size_t n_tests;		 /* the family of all changes */
	char **warning;
	size_t n_warnings;
};

struct sweep_result *sweep_result_new(size_t n_targets); /* aborts without memory, as all here */
void sweep_result_free(struct sweep_result *res);
void sweep_plan_copy(struct sweep_plan *to, const struct sweep_plan *from); /* to is overwritten */
void sweep_plan_free(struct sweep_plan *plan); /* its arrays; then it is empty */
void sweep_result_warn(struct sweep_result *res, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

const char *sweep_verdict_name(enum sweep_verdict verdict); /* "CRITICAL", "NOT CALLED" */
const char *sweep_arm_name(enum sweep_arm arm);		    /* "off", "sham", "dose" */
const char *sweep_stage_name(enum sweep_stage stage);
const char *sweep_slack_name(enum sweep_slack_kind kind);
const char *sweep_load_name(enum sweep_load load);

/* 0: every target has a verdict; 6: something is INCONCLUSIVE or INVALID, or A/A differed. */
int sweep_exit_status(const struct sweep_result *res);

#endif
