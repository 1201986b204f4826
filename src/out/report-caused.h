/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_REPORT_CAUSED_H
#define SB_OUT_REPORT_CAUSED_H

#include <jansson.h>
#include <stdio.h>
#include "trace/sum.h"

/*
 * Launches by the Python function that caused them: a part of the report, for traces that have
 * both. A launch is the own one of the innermost Python function above it in the trace.
 */
void out_report_caused(FILE *to, const struct sum *sum);

/* The array `launches_by_python`, empty where the trace has none; the sums. */
void out_report_caused_put(json_t *cuda, const struct sum *sum);

#endif
