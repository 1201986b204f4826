/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_EXPLAIN_H
#define SB_RESULT_EXPLAIN_H

#include <stdbool.h>
#include "evidence/evidence.h"
#include "src/base/err.h"
#include "sweep/ratio.h"

/* What `sbinject explain` measured, as plain data: where the time of an item goes. Unknown figures
 * are NAN. */
struct explain_part {
	struct ratio reason[EVIDENCE_REASONS]; /* ns per item */
	struct ratio off_cpu;		       /* neither on a processor nor in the run queue */
};

struct explain_thread {
	pid_t pid, tid;
	char name[32];	/* "": it had ended before it was read */
	double watched; /* share of the time */
	struct explain_part part;
};

struct explain_result {
	char *progress; /* NULL: none; an item is a second then */
	double time_s, items;
	size_t blocks;
	struct ratio time_per_item; /* ns of wall time */
	/* Of the average thread: adds up to time_per_item. */
	struct explain_part whole;
	struct ratio counter[EVIDENCE_COUNTERS]; /* per item, of all threads together */
	double threads;				 /* that did something, on average */
	size_t idle;				 /* threads that did nothing, left out */
	struct explain_thread *thread;		 /* those, the busiest first */
	size_t n_threads;
	/* The check: how far the sum of the parts is from the time by the clock, as a share of it,
	 * in the worst thread. NAN: the parts are not known. */
	double off_by;
	bool adds_up;
	const char *unknown[EVIDENCE_COUNTERS]; /* NULL: known */
	struct sb_err limit;			/* why BPF is not used; code SB_OK: it is */
	uint64_t lost;				/* threads that could not be watched */
	bool ended_early;
};

void explain_free(struct explain_result *res); /* NULL is harmless */

#endif
