/* SPDX-License-Identifier: MIT */
#ifndef SB_RUNTIME_H
#define SB_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Where running sessions are found: one directory for each user, mode 0700, with one socket for
 * each session, named by the pid of its command line. The directory is $SBINJECT_RUNTIME_DIR, else
 * for root /run/sbinject, else $XDG_RUNTIME_DIR/sbinject if that belongs to this user (su and sudo
 * leave another user's), else /tmp/sbinject-UID.
 */
#define RUNTIME_SOCKET ".sock"

/* The directory of this user; does not create it. Returns buf. */
char *runtime_dir(char *buf, size_t size);

/* Where root finds a session of that user, if its environment is the usual one. Returns buf. */
char *runtime_dir_of(uid_t user, char *buf, size_t size);

/* Creates it. SB_EPERM: another user could have put something there. */
int runtime_make(char *buf, size_t size, struct sb_err *err);

/* The pid namespace of the caller: pids are valid in their own namespace only. */
uint64_t runtime_namespace(void);

/* SB_EPERM unless `dir` is a directory that only `user` can write to. SB_ENOPROC: it does not
 * exist. */
int runtime_check(const char *dir, uid_t user, struct sb_err *err);

/* The socket of a session in dir. Returns buf. */
char *runtime_socket(const char *dir, pid_t session, char *buf, size_t size);

/* The pids of the sessions with a socket in dir, sorted. The caller frees. */
size_t runtime_sessions(const char *dir, pid_t **sessions);

/* Connects, or returns -1 within ten seconds. Removes a socket without a listener. */
int runtime_connect(const char *path);

/* Listens there. Replaces the socket of a dead session. SB_EHOOKED: a living session has that
 * name. */
int runtime_listen(const char *path, int backlog, struct sb_err *err);

/*
 * Opens standard streams that the caller of the program has closed; otherwise the next opened file
 * or socket would take their place. They are opened for reading only, so that writing fails as it
 * would have. A program that we start gets them closed again.
 */
void runtime_hold_streams(void);

#endif
