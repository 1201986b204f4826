/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_REPORT_ROWS_H
#define SB_OUT_REPORT_ROWS_H

#include <stddef.h>
#include "trace/sum.h"

/* A function's calls, or the delays that were given in it. */
struct report_row {
	const struct sum_function *f;
	const struct sum_times *times;
	enum trace_kind kind;
};

/* At most so many are shown as text. */
enum { REPORT_ROWS_MAX = 40 };

/* All that have spans, those with the most own time first. The caller frees. */
struct report_row *report_rows(const struct sum *sum, size_t *n);

#endif
