/* SPDX-License-Identifier: MIT */
#ifndef SB_EXPLAIN_FUTEX_H
#define SB_EXPLAIN_FUTEX_H

#include "explain-infer.h"

/* The time in futexes, by address; pure. By block: items, the time by the clock, the time of all
 * threads that are not idle, and that of it in futexes. */
struct explain_futex_cfg {
	const struct explain_edge *edge; /* one more than blocks */
	size_t blocks;
	const double *items, *wall, *span, *futex;
	const struct evidence_thread *idle; /* threads that do not count */
	size_t n_idle;
};

/* Sets the futexes of the result and their check. */
void explain_futexes(const struct explain_futex_cfg *cfg, struct explain_result *res);

#endif
