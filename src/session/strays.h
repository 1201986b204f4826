/* SPDX-License-Identifier: MIT */
#ifndef SB_STRAYS_H
#define SB_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Processes that carry hooks of a session without being traced by it: forks of an untraced process,
 * and all that remain when the tracer has died. A target can give its files, names and bytes to any
 * other process, so none of these proves which session a process belongs to. Facts of the kernel
 * identify a stray:
 *
 * - it maps a file in memory with the device and inode of a control page of this session, and
 * - it has exactly the user and group ids of the process that the page was made for, or its chain
 *   of parents leads to a process of the session.
 *
 * The table is memory that the command line shares with the tracer. The tracer fills it; the
 * command line reads it after the tracer has been killed.
 */
struct strays;

struct strays *strays_new(void); /* NULL: no memory */
void strays_free(struct strays *t);

/* Registers a process that the user has named, or that was started for the user, or for which a
 * page is about to be made. It must live now. */
void strays_root(struct strays *t, pid_t pid);

/* Registers a control page that was made for a process with these ids; dev as /proc/PID/maps shows
 * it. */
struct task_ids;
void strays_page(struct strays *t, const struct task_ids *ids, uint32_t dev, uint64_t inode);

/* Is it still the process that strays_root() registered, and not another one with the same
 * number? */
bool strays_is_root(const struct strays *t, pid_t pid);

/*
 * The caller frees *pids. *other (may be NULL): a process that maps a page of this session but is
 * not a stray by its ids and parents; 0: none. t NULL: finds nothing.
 */
int strays_find(const struct strays *t, pid_t **pids, size_t *n, pid_t *other);

/*
 * Processes that look hooked, by any session, from their own names and memory: for reports only,
 * never to be changed.
 */
int strays_looking_hooked(pid_t **pids, size_t *n);

#endif
