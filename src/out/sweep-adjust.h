/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_ADJUST_H
#define SB_OUT_SWEEP_ADJUST_H

#include <jansson.h>
#include "sweep.h"

/* What the times of a sweep are adjusted for; n: targets to show. */

/* Nothing, where nothing was given. */
void out_sweep_adjust(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about,
		      size_t n);

/* The array `adjust` of the document. */
json_t *out_sweep_adjust_json(const struct sweep_result *res, const struct out_sweep_about *about);

#endif
