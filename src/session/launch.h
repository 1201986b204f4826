/* SPDX-License-Identifier: MIT */
#ifndef SB_LAUNCH_H
#define SB_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * A command, started as a child of the command line so that the terminal, its signals and its
 * exit status are what they would be without sbinject. It waits before its exec until it is
 * let go, so that a tracer can be there first.
 */
struct launch {
	pid_t pid;
	int gate;   /* write end: the tracer's pid lets it exec */
	int report; /* read end: errno of a failed exec, or end of file */
	bool ended;
	int status; /* as of waitpid(2), once ended */
};

/* Is it there and executable? Errors: SB_ENOCMD, SB_ENOEXEC. */
int launch_check(char *const *command, struct sb_err *err);

/*
 * target: it is to be traced by a process that is no ancestor of it, which Yama (ptrace_scope 1)
 * would refuse. Until launch_go() it lets the caller's descendants trace it, and from then on the
 * tracer alone. Yama holds on to that very process, not to its number, and forgets it when it ends:
 * nothing has to be taken back at detach, where an exception of the command's own would go with
 * ours.
 */
int launch_start(struct launch *l, char *const *command, bool target, struct sb_err *err);

/* Lets it exec. SB_ENOCMD, SB_ENOEXEC if that failed; then it has ended. */
int launch_go(struct launch *l, pid_t tracer, struct sb_err *err);

/* Never to run: ends it. */
void launch_abandon(struct launch *l);

/* Collects its status if it has ended. */
bool launch_poll(struct launch *l);

/* 0 to 255 as a shell would say it: 128 + signal. */
int launch_exit_status(const struct launch *l);

#endif
