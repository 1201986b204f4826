/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_QUANTILES_H
#define SB_OUT_SWEEP_QUANTILES_H

#include "sweep.h"

/* For a terminal: the quantiles of the response of the first n targets, and what a delay changes of
 * them. Nothing without a response source. */
void out_sweep_quantiles(FILE *to, const struct sweep_result *res, size_t n);

#endif
