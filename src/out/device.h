/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_DEVICE_H
#define SB_OUT_DEVICE_H

#include <stdio.h>
#include "src/result/result.h"
#include "trace/devices.h"

/* What the spans of devices add up to, as the result has it; devices_finish() came before. */
void out_device_fill(struct result_device *to, const struct devices *from);

/* As text: the sums, the busy time of each device, and a table by kernel. */
void out_device(FILE *to, const struct result_device *d);

#endif
