/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_LANE_H
#define SWEEP_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Injected time of many threads and processes as one number.
 *
 * Within a lane delays follow one another, so they are summed. Lanes that are replicas (same role:
 * ranks, workers) run side by side, so their injected time is averaged. With 8 ranks delayed alike
 * a plain sum would be 8 times what each of them feels, and kappa an eighth of the truth. The mean
 * is also right where each of 4 workers serves a quarter of the items: T and x both are a quarter
 * of the time of one item. Roles (API server and engine) are different parts of one path: summed.
 *
 *	x = sum over roles r of ( sum of injected time in r / lanes of r side by side )
 *
 * How many lanes are side by side is measured. Only lanes that were hit count, and each as long as
 * it lived: 28 processes that a loop starts one after another are one lane, and so are threads of
 * which one works while the others wait for it. Idle workers would make kappa too large. So the
 * hits of all windows decide which lanes count, not each window.
 */
enum lane_mode {
	LANE_AUTO,    /* as many as were seen at work side by side; if unclear, as LANE_PROCESS */
	LANE_PROCESS, /* a lane is a process */
	LANE_THREAD,  /* a lane is a thread */
	LANE_ALL,     /* everything is one lane: a plain sum */
	/* The least and the most that LANE_AUTO may have missed. */
	LANE_LEAST,
	LANE_MOST
};

/* A counter's place: the finest part that the caller can distinguish. Numbers are the caller's. */
struct lane {
	int role, process, thread; /* indices >= 0; thread is unique among all processes */
};

struct lane_count {
	uint64_t hits;
	uint64_t injected_ns; /* measured, overrun included: what the thread really lost */
	uint64_t overrun_ns;  /* of it: interruptions, which are no part of the dose */
	double gone;	      /* share of the window in which it did not exist */
};

/*
 * Threads of a role at work at the same instant, over some instants. A thread that runs, waits for
 * a processor or sleeps for a set time is at work; one that waits for a lock or a condition is not;
 * one in another system call (it reads from a socket) may be or not.
 */
#define LANE_SCANS 8 /* fewer instants show nothing */
struct lane_scan {
	double n, unsteady;	  /* instants; of them: some thread changed meanwhile */
	double surely, surely2;	  /* sum of the threads at work, and of its squares */
	double perhaps, perhaps2; /* the same with those that may be */
};

void lane_scan_add(struct lane_scan *to, const struct lane_scan *scan);

struct lane_set {
	const struct lane *lane;
	const struct lane_count *total; /* one per lane: over all windows; gone: the mean */
	size_t n;
	const struct lane_scan *scan; /* by role; NULL: none */
	size_t n_scans;
	/*
	 * > 0: x is that of one of so many events (requests), and not of time at the progress. An
	 * event that is called for less often than there are lanes passes one of them (a pool), and
	 * what it is delayed by is not divided. Otherwise it may pass one or all (ranks).
	 */
	double events;
};

/*
 * Weights w with x = sum w[i] * injected[i]. A role >= 0 gives that role alone, -1 all. Returns the
 * number of lanes side by side, roles added up.
 */
double lane_weights(const struct lane_set *set, enum lane_mode mode, int role, double *w);

/* Of the modes that a user can choose: LANE_AUTO to LANE_ALL. */
const char *lane_mode_name(enum lane_mode mode);

#endif
