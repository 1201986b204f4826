/* SPDX-License-Identifier: MIT */
#ifndef SB_MAPFILES_H
#define SB_MAPFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * A thread that writes and removes perf maps (mapfile.h). Whatever file system is at a target's
 * /tmp, and even if the target itself serves that file system, the session does not wait for it.
 * What is asked for is done in this order.
 */
struct mapfiles;
struct mapfile;

struct mapfiles *mapfiles_open(void); /* NULL: no thread could be started */

/* The map of a process; nothing is written yet. It lives until mapfiles_drop(). NULL: SB_ENOPROC,
 * it has ended, or another failure. */
struct mapfile *mapfiles_add(struct mapfiles *w, pid_t pid, struct sb_err *err);

/*
 * Adds lines to it, and takes them over (malloc). False, once and from then on: more than
 * MAPFILES_MOST bytes would be in files.
 */
#define MAPFILES_MOST (64u << 20)
bool mapfiles_write(struct mapfiles *w, struct mapfile *m, char *lines, size_t len);

/* Its process has ended, or has no stub any more. Removes its lines, unless keep. */
void mapfiles_drop(struct mapfiles *w, struct mapfile *m, bool keep);

/* Has anything failed so far? True once, with the first failure. */
bool mapfiles_failed(struct mapfiles *w, struct sb_err *err);

/*
 * Returns when all is done, or after two seconds; then the thread is abandoned, which is a failure.
 * As mapfiles_failed().
 */
bool mapfiles_close(struct mapfiles *w, struct sb_err *err);

/* Removes lines of whatever session from the maps of these processes. */
void mapfiles_tidy(const pid_t *pids, size_t n);

#endif
