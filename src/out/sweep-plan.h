/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_PLAN_H
#define SB_OUT_SWEEP_PLAN_H

#include <jansson.h>
#include <stdio.h>
#include "sweep/result.h"

/* A line for the whole, and one for each target with its doses; spec: names, by
 * plan.target[].target.
 */
void out_sweep_plan(FILE *to, const struct sweep_plan *plan, const char *const *spec);

/* Null where no block was planned. */
json_t *out_sweep_plan_json(const struct sweep_result *res);

#endif
