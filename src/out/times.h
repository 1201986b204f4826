/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_TIMES_H
#define SB_OUT_TIMES_H

#include <stdbool.h>
#include <stdio.h>
#include "src/result/result.h"

/* Parts of out_table(). The table of the timed targets: sorted, those first whose calls took the
 * most time together; else in their order. Nothing if there are none. */
void out_times(FILE *to, const struct result *res, bool sorted);

/* What the table does not hold: missed calls, functions that are not timed. */
void out_times_notices(FILE *to, const struct result *res);

#endif
