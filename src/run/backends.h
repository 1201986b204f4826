/* SPDX-License-Identifier: MIT */
#ifndef SB_BACKENDS_H
#define SB_BACKENDS_H

#include "src/session/backend.h"

/*
 * Chooses by name. "auto" (or NULL) is inject, unless inject cannot do it (the machine or one of
 * the processes refuses ptrace; or all processes are to be hooked) and another backend can; a line
 * then says why. NULL with the error: the valid names, or the obstacle.
 */
const struct backend *backend_choose(const char *name, const struct session_config *cfg,
				     struct sb_err *err);

/* All backends, in the order in which they are tried; NULL-terminated. */
extern const struct backend *const backends[];

#endif
