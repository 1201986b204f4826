/* SPDX-License-Identifier: MIT */
#ifndef SB_SWEEP_READ_H
#define SB_SWEEP_READ_H

#include <jansson.h>
#include "job.h"
#include "src/run/client.h"

/*
 * The counters of a live session at one instant, and the difference of two such readings. A process
 * may end in between: its hits count, though on no thread.
 */
struct sweep_row {
	pid_t pid, tid; /* tid 0: not known */
	size_t target, slot;
	/* spent: injected and overrun, the real loss of the thread */
	uint64_t hits, spent_ns, overrun_ns;
};

/* The order of rows, for qsort(). */
int sweep_row_order(const void *a, const void *b);

struct sweep_reading {
	uint64_t t_ns; /* of the items */
	double items, response_sum_ns, response_count;
	double amount[SWEEP_ADJUST]; /* of the covariates */
	struct sweep_bucket *bucket; /* of the responses so far, rising; NULL: no histogram */
	size_t n_buckets;
	bool sparse;	       /* buckets without a response are left out */
	struct sweep_row *row; /* living threads, sorted */
	size_t n_rows;
	uint64_t *hits, *spent_ns, *overrun_ns; /* by target, ended processes included */
	struct drive_own *own; /* by target: the duration of its calls so far, if they are timed */
	bool moved;	       /* an item was completed just before */
	bool timing;	       /* timing has the state that was last requested */
};

struct sweep_reader;

/* The role of a process: its first one. Valid until the next call. */
const char *sweep_role_of(struct sweep_reader *reader, pid_t pid);
/* Its threads pass work on to each other faster than it can be seen: Go's, which carry goroutines
 * in turn, and look for more while another one runs. */
bool sweep_hands_on(struct sweep_reader *reader, pid_t pid);

/* The reader borrows the client. n_all: targets of the session, the progress target included. */
struct sweep_reader *sweep_reader_new(struct sweep_job *job, struct client *client, size_t n_all);
void sweep_reader_free(struct sweep_reader *reader);

/* Sends a request to the session (control.h); the caller drops the reference to the answer. NULL
 * with the error: the request was refused, or (SB_ENOPROC) the session has ended. */
json_t *sweep_ask(struct sweep_reader *reader, json_t *request, struct sb_err *err);

/* Reads the covariates: after the counters, as near to them as their sources answer. */
int sweep_reading_covariates(struct sweep_reader *reader, struct sweep_reading *r,
			     struct sb_err *err);

/* Reads the counters and the progress now. sweep_reading_free() frees *r, also after a failure. */
int sweep_reading_take(struct sweep_reader *reader, struct sweep_reading *r, struct sb_err *err);
/* As sweep_reading_take(), right after an item, if the items are calls of a target: polls for one
 * every poll_ns, for a few ms. r->moved is false if there was none. */
int sweep_reading_take_after(struct sweep_reader *reader, uint64_t poll_ns, struct sweep_reading *r,
			     struct sb_err *err);
void sweep_reading_free(struct sweep_reading *r);

/* From a to b, for drive_take(): the hits of all targets, one each; the lanes of some of them, by
 * the flags of drive_treated() or drive_part_treated(). The caller frees. */
uint64_t *sweep_reading_hits(const struct sweep_reader *reader, const struct sweep_reading *a,
			     const struct sweep_reading *b);
struct lane_count *sweep_reading_lanes(struct sweep_reader *reader, struct drive *drive,
				       const bool *treated, const struct sweep_reading *a,
				       const struct sweep_reading *b, size_t *n_lanes);

/* The histogram of the responses between the two, for drive_take(). The caller frees. NULL: not
 * known. */
struct sweep_bucket *sweep_reading_buckets(const struct sweep_reading *a,
					   const struct sweep_reading *b, size_t *n);

/* The duration of calls between the two, one entry for each target, for drive_take(). The caller
 * frees. NULL: calls were not timed everywhere. */
struct drive_own *sweep_reading_own(const struct sweep_reader *reader,
				    const struct sweep_reading *a, const struct sweep_reading *b);

/*
 * Which threads are at work at the same time, of those that the treated targets have been called
 * by: looks at them during a window. Without effect where there is one such thread, or where one
 * is not known. Both readings are borrowed for the call: the threads are those with calls between
 * them. Where several targets share the window, the same for each of them.
 */
struct sweep_scan;
struct sweep_scan *sweep_scan_begin(struct sweep_reader *reader, struct drive *drive,
				    const struct sweep_reading *before,
				    const struct sweep_reading *r);
/* Looks once, if it is time to: clock_ns(). Reads two files of /proc for each thread. */
void sweep_scan_look(struct sweep_scan *scan, uint64_t now_ns);
/* For drive_take(), until sweep_scan_end(): of all treated targets, or of a part of drive_parts().
 */
#define SWEEP_SCAN_ALL SIZE_MAX
const struct lane_scan *sweep_scan_seen(const struct sweep_scan *scan, size_t part, size_t *n);
void sweep_scan_end(struct sweep_scan *scan);

/* CPU time of threads: running, or waiting for a processor. */
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
