/* SPDX-License-Identifier: MIT */
#ifndef SB_PROCESSES_H
#define SB_PROCESSES_H

#include "session.h"

/* Which processes a session is about, from /proc; the same for every backend. */

/* Sbinject's own, and what else is never to be touched. */
bool processes_skipped(const struct session_config *cfg, pid_t pid);

/* Those that were named, and their descendants as they are now; the caller frees. */
void processes_descendants(const struct session_config *cfg, pid_t **pids, size_t *n);

/* Every process with its parent, from one pass over /proc; the caller frees. */
size_t processes_all(pid_t (**out)[2]);

bool processes_listed(const pid_t *pids, size_t n, pid_t pid);

/* Its name and its program; *exe is the caller's. */
void processes_names(pid_t pid, char *comm, size_t size, char **exe);

#endif
