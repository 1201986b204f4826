/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_TIMES_H
#define SB_OUT_TIMES_H

#include <stdbool.h>
#include <stdio.h>
#include "src/result/result.h"

/* Parts of out_table(). The table of the timed targets: sorted, those first whose calls took the
 * most time together; else in their order. Nothing if there are none. */
void out_times(FILE *to, const struct result *res, bool sorted);

/*
 * The functions of a target by how long their calls took, with a blank line before. False: none was
 * timed by itself, and nothing is printed.
 */
bool out_times_functions(FILE *to, const struct result_target *target);

/* What the table does not hold: missed calls, functions that are not timed. */
void out_times_notices(FILE *to, const struct result *res);

#endif
