/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_JSON_H
#define SB_CONTROL_JSON_H

#include <jansson.h>
#include "control.h"

/* What control.c makes its answers of; out of memory aborts. */
json_t *json_must(json_t *value);
void json_put(json_t *object, const char *key, json_t *value); /* takes the reference */
/* Names come as they were typed; JSON is UTF-8: what is not is shown as '?'. */
json_t *json_shown(const char *from);

json_t *control_target(const struct session_target *t, size_t index);
/* Its functions by their own hits as "functions", in a session that counts them. */
void control_functions(const struct backend *b, struct session *s, size_t index, json_t *target);

#endif
