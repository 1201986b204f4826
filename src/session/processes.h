/* SPDX-License-Identifier: MIT */
#ifndef SB_PROCESSES_H
#define SB_PROCESSES_H

#include "session.h"

/* The processes that a session concerns, from /proc; the same for every backend. */

/* sbinject's own processes, and others that must never be touched. */
bool processes_skipped(const struct session_config *cfg, pid_t pid);

/* The named processes and their current descendants. The caller frees. */
void processes_descendants(const struct session_config *cfg, pid_t **pids, size_t *n);

/* Every process, from one pass over /proc. The caller frees. */
size_t processes_all(pid_t **out);

bool processes_listed(const pid_t *pids, size_t n, pid_t pid);

/* Its name and its executable. The caller frees *exe. */
void processes_names(pid_t pid, char *comm, size_t size, char **exe);

/* A file of a thread in /proc, with a NUL, cut to size. False, and "": the thread has ended. */
bool processes_thread_file(pid_t pid, pid_t tid, const char *name, char *text, size_t size);

/* "": it has ended. */
void processes_thread_name(pid_t pid, pid_t tid, char *comm, size_t size);

#endif
