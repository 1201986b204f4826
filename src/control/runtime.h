/* SPDX-License-Identifier: MIT */
#ifndef SB_RUNTIME_H
#define SB_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Where running sessions can be found: one directory a user, mode 0700, with one socket a session,
 * named by the pid of its command line. $SBINJECT_RUNTIME_DIR, else for root /run/sbinject, else
 * $XDG_RUNTIME_DIR/sbinject where that is this user's (su and sudo leave another's behind), else
 * /tmp/sbinject-UID.
 */
#define RUNTIME_SOCKET ".sock"

/* The directory of this user, not made; returns buf. */
char *runtime_dir(char *buf, size_t size);

/* Where a session of that user's is found by root, if its surroundings are usual; returns buf. */
char *runtime_dir_of(uid_t user, char *buf, size_t size);

/* Makes it; refused (SB_EPERM) where somebody else could have put something there. */
int runtime_make(char *buf, size_t size, struct sb_err *err);

/* Which pid namespace we are in: numbers of processes mean something in their own one only. */
uint64_t runtime_namespace(void);

/* Is it a directory that only `user` can have put something into? Absent: SB_ENOPROC. */
int runtime_check(const char *dir, uid_t user, struct sb_err *err);

/* The socket of a session in dir; returns buf. */
char *runtime_socket(const char *dir, pid_t session, char *buf, size_t size);

/* Pids of the sessions that have a socket in dir, sorted; the caller frees. */
size_t runtime_sessions(const char *dir, pid_t **sessions);

/* Connects, or says -1 within ten seconds; a socket that nobody listens on any more is removed. */
int runtime_connect(const char *path);

/* Listens there. A dead session's socket is replaced; SB_EHOOKED: a living one has that name. */
int runtime_listen(const char *path, int backlog, struct sb_err *err);

/*
 * Refuses (SB_EPERM) where the program was given rights that whoever runs it does not have: real
 * and effective ids differ, or there are capabilities of the file's. Nothing here is made for that:
 * paths that the user names are opened with all rights there are. Asked before anything else.
 */
int runtime_refuse_gained(struct sb_err *err);

/*
 * Standard streams that whoever started us had closed: the next file or socket that is opened would
 * be taken for one of them. They are opened for reading only, so that writing fails as it would
 * have, and are closed again in a program that is started.
 */
void runtime_hold_streams(void);

#endif
