/* SPDX-License-Identifier: MIT */
#ifndef SB_ROLE_H
#define SB_ROLE_H

#include "trace/lockorder.h"

struct sum_role; /* trace/sum.h */

/*
 * What a function of a trace is for, by the kind that the presets `cuda` (API 0) and `cudart` (API
 * 1) give it: `launch` and `sync` have a role. Presets that cannot be read give none.
 */
struct sum_role role_of(const struct trace_function *function);

/* What a function does with a lock, by the kind that the preset `locks` gives it. */
enum lock_op role_lock(const struct trace_function *function);

/* As struct trace_file_config has it. */
uint32_t role_launcher(const struct trace_function *function);

/* "cuda", "cudart": by the number of an API. */
const char *role_api(unsigned int api);

/* "CUDA_ERROR_OUT_OF_MEMORY": what a function of that API returned. NULL: unknown. */
const char *role_result_name(unsigned int api, int64_t code);

#endif
