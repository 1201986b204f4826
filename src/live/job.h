/* SPDX-License-Identifier: MIT */
#ifndef SB_SWEEP_JOB_H
#define SB_SWEEP_JOB_H

#include "progress.h"
#include <stdio.h>
#include "src/run/client.h"
#include "src/run/options.h"
#include "src/session/backend.h"
#include "sweep/drive.h"

/*
 * One sweep as the command line asks for it, and its two ways to be carried out: on a process that
 * lives (its hooks are switched while it runs untraced), or by running a command again and again.
 * Both turn the crank of sweep/drive.h.
 */
struct sweep_job {
	struct options *opt; /* processes, targets, command; what every verb has */
	const struct backend *backend;
	struct drive_cfg cfg;
	bool *can_time;				   /* cfg.can_time; free() it */
	const char *progress_text, *response_text; /* NULL: none */
	struct progress *progress, *response;	   /* NULL: a TARGET's hits, or the command's end */
	size_t progress_index;			   /* of such a target, or DRIVE_NONE */
	size_t n_targets;			   /* asked about; the progress target may follow */
	FILE *events;				   /* --events; NULL: none */
	bool quiet;
	struct client *client; /* after sweep_live(): a launched command runs on, not hooked */
	struct client_outcome outcome;
};

/* The result so far, also where the sweep ended early (*err then says why, or is empty after
 * Ctrl-C). NULL: nothing was measured. */
struct sweep_result *sweep_live(struct sweep_job *job, struct sb_err *err);
/* Waits for the launched command, if it still runs; 0, or what went wrong at the detach. */
int sweep_live_end(struct sweep_job *job, struct sb_err *err);
struct sweep_result *sweep_runs(struct sweep_job *job, struct sb_err *err);

/* Opens the drive, which is told which targets' calls can be timed, and why the others' cannot.
 * cfg.can_time is the job's; NULL: as drive_open(). */
struct drive *sweep_drive(struct sweep_job *job, struct sb_err *err);

/* What is told on the terminal while it goes on: stage, block, time left, kappas so far. Overwrites
 * itself on a terminal, a line now and then elsewhere. */
void sweep_show(struct sweep_job *job, struct drive *drive, bool last);

/* A line of --events: a change of arm, with both clocks. */
void sweep_event(struct sweep_job *job, const struct drive_step *step);

/* A process's part in the whole: its program and title without numbers ("EngineCore"). */
void sweep_role(pid_t pid, char *buf, size_t size);

#endif
