/* SPDX-License-Identifier: MIT */
#ifndef SB_LAUNCH_H
#define SB_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>
#include "err.h"

/*
 * A command, started as a child of the command line so that the terminal, its signals and its
 * exit status are what they would be without sbinject. It waits before its exec until it is
 * let go, so that a tracer can be there first.
 */
struct launch {
	pid_t pid;
	int gate;   /* write end: a byte lets it exec */
	int report; /* read end: errno of a failed exec, or end of file */
	bool ended;
	int status; /* as of waitpid(2), once ended */
};

/* Is it there and executable? Errors: SB_ENOCMD, SB_ENOEXEC. */
int launch_check(char *const *command, struct sb_err *err);

int launch_start(struct launch *l, char *const *command, struct sb_err *err);

/* Lets it exec. SB_ENOCMD, SB_ENOEXEC if that failed; then it has ended. */
int launch_go(struct launch *l, struct sb_err *err);

/* Never to run: ends it. */
void launch_abandon(struct launch *l);

/* Collects its status if it has ended. */
bool launch_poll(struct launch *l);

/* 0 to 255 as a shell would say it: 128 + signal. */
int launch_exit_status(const struct launch *l);

#endif
