/* SPDX-License-Identifier: MIT */
#ifndef SB_RECOVER_H
#define SB_RECOVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "err.h"

/*
 * Restoring targets without the session that hooked them: from the journals in their memory.
 * Used by `sbinject recover` and by the command line when its tracer has died.
 */

/*
 * Restores these processes. A process without hooks counts as nothing. *restored: how many had
 * some. Errors: the first failure; the others are tried all the same. The first `named` of them are
 * those that were asked for: that another one has ended meanwhile is no failure.
 */
int recover_processes(const pid_t *pids, size_t n, size_t named, size_t *restored,
		      struct sb_err *err);

#endif
