/* SPDX-License-Identifier: MIT */
#ifndef SB_ASK_H
#define SB_ASK_H

#include <jansson.h>
#include <sys/types.h>

/* One request to a session (control.h), by its own socket; it ends with a newline. The answer, or
 * NULL where none came within five seconds. The caller drops the reference. */
json_t *control_ask(pid_t session, const char *request);

#endif
