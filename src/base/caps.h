/* SPDX-License-Identifier: MIT */
#ifndef SB_CAPS_H
#define SB_CAPS_H

#include <stdbool.h>
#include "err.h"

/* Numbers of capabilities(7), as in linux/capability.h, which older headers lack in part. */
enum {
	CAPS_DAC_OVERRIDE = 1,
	CAPS_SYS_PTRACE = 19,
	CAPS_SYS_ADMIN = 21,
	CAPS_PERFMON = 38,
	CAPS_BPF = 39,
	CAPS_CHECKPOINT_RESTORE = 40,
};

/* Does sbinject have this capability now, or may it raise it? False also where the kernel does not
 * say so. */
bool caps_has(int capability);

/*
 * A program whose file has capabilities runs for users who lack them. It opens, writes and executes
 * what its user names with no more rights than this user's; so it holds them only around the calls
 * on another process that need them, each on a path that it has made of a process's number.
 *
 * caps_spare(): at the start of the program, before any other thread. SB_EPERM: its file has other
 * capabilities than it can use in this way, or a set-user-id or set-group-id bit. With none of
 * these (root, or an ordinary user) it does nothing, and neither do the others.
 */
int caps_spare(struct sb_err *err);

/* Of the calling thread; errno is kept. Pairs nest: caps_raise() returns what caps_lower() takes.
 */
bool caps_raise(void);
void caps_lower(bool raised);
#define CAPS(call)                                 \
	__extension__({                            \
		bool caps_raised_ = caps_raise();  \
		__auto_type caps_result_ = (call); \
		caps_lower(caps_raised_);          \
		caps_result_;                      \
	})

/* The calling thread and what it starts never raise any again. */
void caps_forsake(void);

/* An environment variable; NULL in a program that has gained rights and keeps them. */
const char *caps_env(const char *name);

#endif
