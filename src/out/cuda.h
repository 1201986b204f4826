/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_CUDA_H
#define SB_OUT_CUDA_H

#include <stdio.h>
#include "src/result/result.h"

/*
 * The object `cuda` of the result, as text: a line with api calls, launches, allocations, copies
 * and waits, and a table of the kinds that were called. What is not known is left out of the line
 * and is "-" in the table: the JSON has the reason.
 */
void out_cuda(FILE *to, const struct result *res);

#endif
