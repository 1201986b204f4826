/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_SIDES_H
#define SB_RESULT_SIDES_H

#include <stdbool.h>
#include "evidence/evidence.h"
#include "src/base/err.h"

/*
 * The counters of a sweep, in the order of its result: those of evidence.h, and the time off the
 * processor, which is known where its parts are not.
 */
enum { SIDES_OFF_CPU = EVIDENCE_COUNTERS, SIDES_COUNTERS };

const char *sides_name(size_t counter); /* "futex_ns", "off_cpu_ns" */
enum evidence_group sides_group(size_t counter);
bool sides_is_time(size_t counter); /* in ns */

/* How the counters of a sweep came about: what its result does not hold. */
struct sides_about {
	bool read;  /* else there are none: `limit` has the reason, if one is worth telling */
	bool asked; /* by --evidence */
	bool groups_named;
	bool group[GROUP_COUNT]; /* kept and tested */
	bool bpf;
	struct sb_err limit; /* why BPF is not used; code SB_OK: it is */
	uint64_t lost;	     /* threads */
	bool unknown[SIDES_COUNTERS];
};

#endif
