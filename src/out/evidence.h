/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_EVIDENCE_H
#define SB_OUT_EVIDENCE_H

#include <stdio.h>
#include "src/result/result.h"

/* Nothing where no evidence was asked for. */
void out_evidence(FILE *to, const struct result_evidence *e);

/* What the counters of the processor are worth, or why there are none; nothing where they were not
 * asked for. */
void out_hardware(FILE *to, const struct result_hardware *hardware);

#endif
