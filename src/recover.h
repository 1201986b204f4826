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

/* Processes that hold hooks of session id (0: of any). *pids is the caller's to free. */
int strays_find(uint64_t id, pid_t **pids, size_t *n);

/*
 * Restores these processes. A process without hooks counts as nothing. *restored: how many had
 * some. Errors: the first failure; the others are tried all the same.
 */
int recover_processes(const pid_t *pids, size_t n, size_t *restored, struct sb_err *err);

#endif
