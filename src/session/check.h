/* SPDX-License-Identifier: MIT */
#ifndef SB_CHECK_H
#define SB_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Obstacles to an attach, found beforehand: one table for the machine, one for a process. `sbinject
 * doctor` prints the rows; an attach refuses with the first row that fails. So doctor reports what
 * an attach does. A check changes nothing and stops nothing.
 */
struct check_on {
	pid_t pid;	  /* of the process to check */
	uint32_t targets; /* number of targets; it decides the size of the control page */
};

struct check {
	const char *name;
	int (*look)(const struct check_on *on, struct sb_err *err); /* 0: passed */
	bool first; /* of the machine: every backend needs it; of a process: without it the other
		       rows see nothing */
};

extern const struct check check_machine_rows[], check_process_rows[];
extern const size_t check_machine_count, check_process_count;

/*
 * Evaluates one row. on: NULL for the machine's. A failure that may be transient is retried for up
 * to 20 ms: a process in the middle of an exec lacks some of what the checks need.
 */
int check_look(const struct check *check, const struct check_on *on, struct sb_err *err);

/* Does the kernel have ptrace(2), and does it permit the call? SB_EPERM: no, with the remedy. */
int check_ptrace(struct sb_err *err);

/* What every attach needs of the machine. */
int check_machine_first(struct sb_err *err);

/* Evaluates all rows of a process; the first failure ends it. */
int check_process(pid_t pid, uint32_t targets, struct sb_err *err);

/* For --mechanism int3 only: would its traps change the signal state of the process? */
int check_trap(pid_t pid, struct sb_err *err);

/* Does the process run in valgrind? Valgrind translates the program's code and never runs what is
 * mapped, so a hook would never be passed. */
int check_translated(pid_t pid, struct sb_err *err);

/* Only the rows that `list` needs: it changes nothing. */
int check_readable(pid_t pid, struct sb_err *err);

/* Is the process hooked by an sbinject, or left hooked by a dead one? */
bool check_is_hooked(pid_t pid);

#endif
