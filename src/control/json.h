/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_JSON_H
#define SB_CONTROL_JSON_H

#include "control.h"
#include "src/base/json.h"

json_t *control_target(const struct session_target *t, size_t index);
/* The same of a session that has ended, with the times of its calls if it was timed. */
json_t *control_ended_target(const struct result_target *t, size_t index);
/* Adds its functions with their own hits as "functions", if the session counts them. */
void control_functions(const struct backend *b, struct session_core *s, size_t index,
		       json_t *target);
/* Adds how long its calls take as "spans", if it is timed. */
void control_times(const struct backend *b, struct session_core *s, size_t index, bool histogram,
		   json_t *target);

/* The counters of the evidence up to now, the time of the reading, and what the machine counted. */
void control_evidence(struct evidence *e, json_t *to);

#endif
