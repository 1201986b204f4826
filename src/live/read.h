/* SPDX-License-Identifier: MIT */
#ifndef SB_SWEEP_READ_H
#define SB_SWEEP_READ_H

#include <jansson.h>
#include "job.h"
#include "src/run/client.h"

/*
 * What stands on the counters of a live session at one instant, and what happened between two of
 * them. Processes may end in between: what they did counts, though on no thread of its own.
 */
struct sweep_row {
	pid_t pid;
	size_t target, slot;
	/* spent: injected and overrun, what the thread really lost */
	uint64_t hits, spent_ns, overrun_ns;
};

struct sweep_reading {
	uint64_t t_ns; /* of the items */
	double items, response_sum, response_count;
	struct sweep_row *row; /* living threads, sorted */
	size_t n_rows;
	uint64_t *hits, *spent_ns, *overrun_ns; /* by target, ended processes included */
	struct drive_own *own; /* by target: what its calls took so far, where they are timed */
	bool moved;	       /* an item had just been done */
	bool timing;	       /* they are, or are not, as was last asked for */
};

struct sweep_reader;

/* The client is borrowed; n_all: targets of the session, the progress target included. */
struct sweep_reader *sweep_reader_new(struct sweep_job *job, struct client *client, size_t n_all);
void sweep_reader_free(struct sweep_reader *reader);

/* A request to the session (control.h); the caller drops the answer. NULL with the error: it was
 * refused, or (SB_ENOPROC) the session is over. */
json_t *sweep_ask(struct sweep_reader *reader, json_t *request, struct sb_err *err);

int sweep_reading_take(struct sweep_reader *reader, struct sweep_reading *r, struct sb_err *err);
/* The same right after an item, where the items are calls of a target: looks for one every poll_ns,
 * for a few ms; r->moved is false where none came. */
int sweep_reading_take_after(struct sweep_reader *reader, uint64_t poll_ns, struct sweep_reading *r,
			     struct sb_err *err);
void sweep_reading_free(struct sweep_reading *r);

/* From a to b: hits and lanes of the treated targets, for drive_tell(). Both arrays are the
 * caller's. */
void sweep_reading_between(struct sweep_reader *reader, struct drive *drive,
			   const struct sweep_reading *a, const struct sweep_reading *b,
			   uint64_t **hits, struct lane_count **lane, size_t *n_lanes);

/* What calls took between the two, one a target, for drive_tell(); the caller's. NULL: they were
 * not timed everywhere. */
struct drive_own *sweep_reading_own(const struct sweep_reader *reader,
				    const struct sweep_reading *a, const struct sweep_reading *b);

/* CPU time of threads: run, or waiting for a processor. */
struct sweep_cpu {
	struct sweep_thread {
		pid_t tid;
		double ns;
	} thread[512];
	size_t n;
};
void sweep_cpu_take(struct sweep_reader *reader, struct sweep_cpu *cpu);
/* Of the busiest thread, as a share of the time; NAN: unknown. */
double sweep_cpu_busiest(const struct sweep_cpu *a, const struct sweep_cpu *b, double time_ns);

#endif
