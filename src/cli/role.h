/* SPDX-License-Identifier: MIT */
#ifndef SB_ROLE_H
#define SB_ROLE_H

#include "trace/sum.h"

/*
 * What a function of a trace is for, by the kind that the presets `cuda` (API 0) and `cudart` (API
 * 1) give it: `launch` and `sync` have a role. Presets that cannot be read give none.
 */
struct sum_role role_of(const struct trace_function *function);

/* "CUDA_ERROR_OUT_OF_MEMORY": what a function of that API returned. NULL: unknown. */
const char *role_result_name(unsigned int api, int64_t code);

#endif
