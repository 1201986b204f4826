/* SPDX-License-Identifier: MIT */
#ifndef SB_INROOT_H
#define SB_INROOT_H

#include <stddef.h>

/*
 * Files of a process by the paths that this process uses. The owner of its root directory chooses
 * what lies there, so a link in it never leads out of that root, and only a regular file is ever
 * opened: to open a device or a FIFO has effects, and the path may become one at any moment.
 *
 * root: "/proc/PID/root", or "" for the paths of sbinject itself, whose links lead where they do,
 * or INROOT_PROC for a path below /proc/PID that sbinject has made itself: /proc may then be
 * searched with capabilities (caps.h). What is opened, is opened with the user's own rights in any
 * case. Where openat2(2) is missing (Linux before 5.6) nothing is found in a root: ENOSYS.
 */
#define INROOT_PROC NULL

int inroot_find(const char *root, const char *path); /* O_PATH, of anything; -1: errno */
/* For reading, not blocking; -1: errno, ENOEXEC for what is no regular file. */
int inroot_open(const char *root, const char *path);

#endif
