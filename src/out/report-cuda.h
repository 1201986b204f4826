/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_REPORT_CUDA_H
#define SB_OUT_REPORT_CUDA_H

#include <jansson.h>
#include <stdio.h>
#include "trace/sum.h"

/*
 * Launches, the gaps between them and waits, by thread; launches by kernel, the longest waits,
 * codes other than 0 that functions returned: a part of the report, for traces that have any. Gaps
 * are unknown where calls are missing in the trace.
 */
void out_report_cuda(FILE *to, const struct sum *sum);

/* The object `cuda`; NULL: the trace has neither launches, nor waits, nor codes. */
json_t *out_report_cuda_json(const struct sum *sum);

#endif
