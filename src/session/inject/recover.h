/* SPDX-License-Identifier: MIT */
#ifndef SB_RECOVER_H
#define SB_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Restores targets without the session that hooked them, from the journals in their memory. Used by
 * `sbinject recover`, and by the command line when its tracer has died.
 */

/*
 * Restores these processes. A process without hooks is skipped. *restored: the number of processes
 * that had hooks. Returns the first failure; the other processes are tried all the same. The user
 * named the first `named` processes; that another one has ended meanwhile is not a failure. An
 * agent whose interpreter does not release it within 20 s stays, dormant, and is a failure.
 */
int recover_processes(const pid_t *pids, size_t n, size_t named, size_t *restored,
		      struct sb_err *err);

/*
 * Removes what is dormant in this process, and nothing else, provided that an agent that is part of
 * it goes within that time. ends: polled now and then; true gives up; may be NULL. Prints nothing.
 * False: it stays; `why` has the reason.
 */
bool recover_dormant(pid_t pid, uint64_t patience_ns, bool (*ends)(void *), void *ctx,
		     struct sb_err *why);

#endif
