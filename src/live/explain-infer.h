/* SPDX-License-Identifier: MIT */
#ifndef SB_EXPLAIN_INFER_H
#define SB_EXPLAIN_INFER_H

#include "src/result/explain.h"

/* Pure: readings at the edges of blocks of time become a breakdown of an item. */
struct explain_edge {
	struct evidence_reading reading;
	double items; /* so far */
};

/* n: two edges or more, in order. parts: the reading has every reason, not only those of /proc. */
struct explain_result *explain_infer(const struct explain_edge *edge, size_t n, bool parts);

#endif
