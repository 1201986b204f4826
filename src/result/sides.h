/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_SIDES_H
#define SB_RESULT_SIDES_H

#include <stdbool.h>
#include "hardware.h"
#include "src/base/err.h"

/*
 * The counters of a sweep, in the order of its result: those of evidence.h, and the time off the
 * processor, which is known where its parts are not.
 */
enum { SIDES_OFF_CPU = EVIDENCE_COUNTERS, SIDES_COUNTERS };

const char *sides_name(size_t counter); /* "futex_ns", "off_cpu_ns" */
enum evidence_group sides_group(size_t counter);
bool sides_is_time(size_t counter); /* in ns */

/* What a delay changes of the waits for a futex, per item; NAN: not known. */
struct sides_futex_change {
	double sham, dose;    /* ns without it, and at the largest dose */
	double delta, lo, hi; /* the difference within blocks, with its 95 % interval */
	double p_adjusted;    /* Holm, over all futexes of the sweep */
	bool significant;
};

/* A futex that threads wait for while a target is measured: up to SIDES_FUTEXES of those that the
 * delayed threads wait for, then as many that only the others do. */
enum { SIDES_FUTEXES = 4, SIDES_CALLERS = 4 };
struct sides_futex {
	size_t target, number; /* of a reading */
	pid_t pid;
	uint64_t addr;
	char *symbol, *caller[SIDES_CALLERS]; /* NULL: not known */
	struct sides_futex_change change[2];  /* by enum sweep_side: delayed, others */
	double share; /* of the delayed threads' time in futexes, in all windows of the target */
	double place_share; /* ... of all addresses that the same functions wait for */
};

/* How the counters of a sweep came about: what its result does not hold. */
struct sides_about {
	bool read;  /* else there are none: `limit` has the reason, if one is worth telling */
	bool asked; /* by --evidence */
	bool groups_named;
	bool group[GROUP_COUNT]; /* kept and tested */
	bool bpf;
	struct sb_err limit; /* why BPF is not used; code SB_OK: it is */
	uint64_t lost;	     /* threads */
	unsigned int sample; /* one of so many frequent events is counted, as so many */
	bool unknown[SIDES_COUNTERS];
	struct result_hardware hardware;
	struct sides_futex *futex; /* by target, then the longest first; sides_futex_free() */
	size_t n_futexes;
};

/* Frees those, and the limit of `hardware`. */
void sides_futex_free(struct sides_about *about);

#endif
