/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_DEVICE_H
#define SB_RESULT_DEVICE_H

#include <jansson.h>
#include "result.h"

/* The object `device` of the object `cuda`: into it, and out of it. */
void result_device_put(json_t *cuda, const struct result_device *d);
bool result_device_get(const json_t *cuda, struct result_device *d);

#endif
