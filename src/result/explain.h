/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_EXPLAIN_H
#define SB_RESULT_EXPLAIN_H

#include <stdbool.h>
#include "evidence/evidence.h"
#include "evidence/quota.h"
#include "hardware.h"
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

/* A function in which the threads are while they are on a processor. */
struct explain_candidate {
	char *target;
	/* Of all samples, of the function alone: not of what it calls. Of a wait: of the time that
	 * a thread waits in it. */
	struct ratio share;
	uint64_t samples; /* of a Python function, and of a wait: looks */
	bool hookable;
	char *why; /* ... it is not; NULL */
};

enum { EXPLAIN_FUTEXES = 8, EXPLAIN_CALLERS = 4 };

/* The waits for one futex. */
struct explain_futex {
	size_t number; /* of the evidence */
	pid_t pid;
	uint64_t addr;
	struct ratio time;	       /* ns per item of the average thread, as the reasons */
	struct ratio all;	       /* ns per item, of all threads together */
	struct ratio waits;	       /* the same, how often */
	char *symbol;		       /* of the address; NULL */
	char *caller[EXPLAIN_CALLERS]; /* functions that were seen to wait, the first first; NULL */
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
	/* The time in futexes by address, the longest first, and of all other addresses: they add
	 * up to the reason. The check is that of off_by, over all threads together; NAN: there was
	 * no such time. */
	struct explain_futex futex[EXPLAIN_FUTEXES], futex_rest;
	size_t n_futexes, futexes_rest; /* how many others */
	double futexes_off_by;
	bool futexes_add_up;
	char *unknown[EVIDENCE_COUNTERS]; /* NULL: known; else why not */
	struct sb_err limit;		  /* why BPF is not used; code SB_OK: it is */
	uint64_t lost;			  /* threads that could not be watched */
	unsigned int sample; /* one of so many frequent events is counted, as so many */
	struct result_hardware hardware;
	struct quota_use quota; /* of a control group; group NULL: no quota was used up */
	bool ended_early;
	struct explain_candidate *candidate; /* the largest share first */
	size_t n_candidates;
	struct explain_candidate *wait; /* Python functions in which threads wait; NULL: none */
	size_t n_waits;
	uint64_t samples, samples_lost;
	uint64_t samples_nowhere;     /* of samples: in no function of a file */
	uint64_t samples_interpreter; /* of samples: Python functions have them instead */
	uint64_t looks; /* at threads that ran, for Python functions; 0: no such interpreter */
	uint64_t threads_unsampled;  /* there were too many */
	bool samples_user_only;	     /* none of the time in the kernel */
	struct sb_err samples_limit; /* why there are none; code SB_OK: there are */
	char *sweep;		     /* the command; NULL: none */
	const char *sweep_why;	     /* ... for this reason */
};

void explain_free(struct explain_result *res); /* NULL is harmless */

#endif
