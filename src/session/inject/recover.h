/* SPDX-License-Identifier: MIT */
#ifndef SB_RECOVER_H
#define SB_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Restoring targets without the session that hooked them: from the journals in their memory.
 * Used by `sbinject recover` and by the command line when its tracer has died.
 */

/*
 * Restores these processes. A process without hooks counts as nothing. *restored: how many of them
 * had some. Errors: the first failure; the others are tried all the same. The first `named` of them
 * are those that were asked for: that another one has ended meanwhile is no failure. An agent whose
 * interpreter does not come to let it go within 20 s stays, dormant, and is a failure.
 */
int recover_processes(const pid_t *pids, size_t n, size_t named, size_t *restored,
		      struct sb_err *err);

/*
 * What is dormant in this process is taken out, and nothing else, if an agent that is part of it
 * goes within that time. ends: to be given up, asked now and then; may be NULL. Without a word;
 * false: it stays, and why has the reason.
 */
bool recover_dormant(pid_t pid, uint64_t patience_ns, bool (*ends)(void *), void *ctx,
		     struct sb_err *why);

#endif
