/* SPDX-License-Identifier: MIT */
#ifndef SB_SWEEP_JOB_H
#define SB_SWEEP_JOB_H

#include "progress.h"
#include <stdio.h>
#include "src/run/client.h"
#include "src/run/options.h"
#include "src/result/sides.h"
#include "src/session/backend.h"
#include "sweep/drive.h"

/*
 * The smallest delay that is exact, ns: what a stub can give on this machine, as clock_hook_cost()
 * measures it in this process (10 to 60 ms); of a backend without stubs, and nowhere less, 40. No
 * dose is smaller, and with it `sweep` and `find` choose the N of every=.
 */
enum { SWEEP_FLOOR_NS = 40 };
uint64_t sweep_floor_ns(const struct backend *backend);

/*
 * One sweep of the command line, and the two ways to carry it out: on a living process (its hooks
 * are switched while it runs untraced), or by repeated runs of a command. Both drive sweep/drive.h.
 */
struct sweep_job {
	struct options *opt; /* processes, targets, command; as for every verb */
	const struct backend *backend;
	struct drive_cfg cfg;
	bool *can_time;				   /* cfg.can_time; free() it */
	const char *progress_text, *response_text; /* NULL: none */
	struct progress *progress, *response;	   /* NULL: a TARGET's hits, or the command's end */
	size_t progress_index;			   /* of such a target, or DRIVE_NONE */
	bool response_calls;   /* the responses are the timed calls of a target ... */
	size_t response_index; /* ... which this is */
	/* What T is adjusted for, cfg.n_adjust of them: a source that is read, or a target's hits.
	 */
	struct sweep_covariate {
		const char *text;
		struct progress *source; /* NULL: hits ... */
		size_t index;		 /* ... of this target */
	} covariate[SWEEP_ADJUST];
	size_t n_targets; /* targets under test; the progress target may follow */
	/* The main blocks begin, or begin anew; NULL: of no interest. */
	void (*planned)(const struct sweep_job *job, const struct sweep_plan *plan);
	bool (*ends)(void); /* of explain: has the user requested the end? NULL: no */
	FILE *events;	    /* --events; NULL: none */
	bool quiet;
	bool sides_off;		  /* no evidence */
	struct sides_about sides; /* asked, group: given; the rest: found */
	struct client *client;	  /* after sweep_live(): a launched command continues, not hooked */
	struct client_outcome outcome;
};

/* The result so far, also if the sweep ended early; *err then has the reason, or is empty after
 * Ctrl-C. NULL: nothing was measured. */
struct sweep_result *sweep_live(struct sweep_job *job, struct sb_err *err);
/* Waits for the launched command, if it still runs. Returns 0, or the error of the detach. */
int sweep_live_end(struct sweep_job *job, struct sb_err *err);
struct sweep_result *sweep_runs(struct sweep_job *job, struct sb_err *err);

/* Opens the drive with the targets whose calls can be timed, and the reason for the others.
 * cfg.can_time belongs to the job. NULL: as drive_open(). */
struct drive *sweep_drive(struct sweep_job *job, struct sb_err *err);

/* The progress on the terminal: stage, block, time left, kappas so far. It is overwritten in place
 * on a terminal; elsewhere a line is printed at intervals. */
void sweep_show(struct sweep_job *job, struct drive *drive, bool last);

/* Passes the plan of the drive on, once for each plan, before its first window. */
void sweep_show_plan(struct sweep_job *job, const struct drive *drive,
		     const struct drive_step *step);

/* A line of --events: a change of arm, with both clocks. */
void sweep_event(struct sweep_job *job, const struct drive_step *step);

/* The role of a process: its program and title without numbers ("EngineCore"). */
void sweep_role(pid_t pid, char *buf, size_t size);

#endif
