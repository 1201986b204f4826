/* SPDX-License-Identifier: MIT */
#ifndef SB_STRAYS_H
#define SB_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Processes that carry a session's hooks without being traced by it: forks of an untraced process,
 * and whoever is left when the tracer has died. A target can give its files, names and bytes to any
 * other process, so none of these says whose a process is. A stray is told by facts of the kernel:
 *
 * - it maps a file in memory with the device and inode of a control page of this session, and
 * - it has the very user and group ids that the process had which the page was made for, or its
 *   chain of parents leads to a process of the session.
 *
 * The table is memory that the command line shares with the tracer, which fills it: the command
 * line needs it when the tracer has been killed. It is written by one and, later, read by the
 * other.
 */
struct strays;

struct strays *strays_new(void); /* NULL: no memory */
void strays_free(struct strays *t);

/* A process that the user has named, or that was started for him; it lives now. */
void strays_root(struct strays *t, pid_t pid);

/* A control page was made for a process; dev as /proc/PID/maps shows it. */
void strays_page(struct strays *t, pid_t pid, uint32_t dev, uint64_t inode);

/* Is it still the process that strays_root() was called with, and not another one of that number?
 */
bool strays_is_root(const struct strays *t, pid_t pid);

/*
 * *pids is the caller's to free. *other (may be NULL): one that maps a page of this session and is
 * no stray all the same, by its ids and its parents; 0: none. t NULL: there are none.
 */
int strays_find(const struct strays *t, pid_t **pids, size_t *n, pid_t *other);

/*
 * Processes that look as if hooked, by any session, after what they themselves say: to be looked
 * at, never to be changed.
 */
int strays_looking_hooked(pid_t **pids, size_t *n);

#endif
