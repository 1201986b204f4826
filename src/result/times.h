/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_TIMES_H
#define SB_RESULT_TIMES_H

#include <jansson.h>
#include "result.h"

/* The object `spans` of a timed target, in the JSON of a run and in answers of a session.
 * histogram: with that, too. */
json_t *times_json(const struct result_times *times, bool histogram);

#endif
