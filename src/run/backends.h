/* SPDX-License-Identifier: MIT */
#ifndef SB_BACKENDS_H
#define SB_BACKENDS_H

#include "src/session/backend.h"

/*
 * By name. "auto" (or NULL) is inject, unless it cannot do what is asked for (ptrace is refused, by
 * the machine or by one of the processes; every process is meant) and another one can: then a
 * line says why. NULL with the error: what there is, or what stands in the way.
 */
const struct backend *backend_choose(const char *name, const struct session_config *cfg,
				     struct sb_err *err);

/* All of them, in the order in which they are tried; NULL ends. */
extern const struct backend *const backends[];

#endif
