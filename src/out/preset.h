/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_PRESET_H
#define SB_OUT_PRESET_H

#include <stdio.h>
#include "src/result/result.h"

/*
 * The targets of a preset's list: a program uses a few of sixty functions. Those without a call
 * have no row of their own in tables; a line for each preset and outcome names them.
 */
bool out_preset_folds(const struct result_target *target);
void out_preset_notices(FILE *to, const struct result *res);

/* Has the target a table of its functions? Not a row for one function, whose versions they are. */
bool out_preset_has_functions(const struct result_target *target);

#endif
