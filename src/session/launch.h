/* SPDX-License-Identifier: MIT */
#ifndef SB_LAUNCH_H
#define SB_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * A command, started as a child of the command line, so that the terminal, its signals and its exit
 * status are the same as without sbinject. It waits before its exec until launch_go(), so that the
 * tracer can attach first.
 */
struct launch {
	pid_t pid;
	int gate;   /* write end: the tracer's pid releases the exec */
	int report; /* read end: errno of a failed exec, or end of file */
	bool ended;
	int status; /* as of waitpid(2), once ended */
};

/* Does the command exist, and is it executable? Errors: SB_ENOCMD, SB_ENOEXEC. */
int launch_check(char *const *command, struct sb_err *err);

/*
 * target: the tracer is not an ancestor of the command, and Yama (ptrace_scope 1) would refuse it.
 * Until launch_go() the command lets the caller's descendants trace it; from then on, the tracer
 * alone. Yama refers to that very process, not to its number, and drops the exception when the
 * process ends. So detach has nothing to undo; undoing it would also remove an exception that the
 * command itself has made.
 */
int launch_start(struct launch *l, char *const *command, bool target, struct sb_err *err);

/* Releases the exec. SB_ENOCMD, SB_ENOEXEC if the exec failed; the command has then ended. */
int launch_go(struct launch *l, pid_t tracer, struct sb_err *err);

/* Ends a command that is never to run. */
void launch_abandon(struct launch *l);

/* Collects the exit status if the command has ended. */
bool launch_poll(struct launch *l);

/* 0 to 255, as a shell reports it: 128 + signal. */
int launch_exit_status(const struct launch *l);

#endif
