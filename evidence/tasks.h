/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_TASKS_H
#define SB_EVIDENCE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Numbers of processes or threads, each once, sorted. All zero: none. */
struct tasks {
	pid_t *id;
	size_t n;
};

void tasks_add(struct tasks *t, pid_t id);
void tasks_free(struct tasks *t);

/* The threads of these processes now, and with `children` of their descendants, where the kernel
 * lists those (CONFIG_PROC_CHILDREN). Replaces *threads. */
void tasks_threads(const struct tasks *processes, bool children, struct tasks *threads);

/* How many of `all` are not in `some`. */
size_t tasks_missing(const struct tasks *all, const struct tasks *some);

#endif
