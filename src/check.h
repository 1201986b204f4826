/* SPDX-License-Identifier: MIT */
#ifndef SB_CHECK_H
#define SB_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "err.h"

/*
 * What can stand in the way of an attach, found beforehand: one table for the machine, one for a
 * process. `sbinject doctor` prints the rows, an attach refuses by the first that says no; so
 * what doctor says is what happens. Nothing is changed by a look, and nobody is stopped.
 */
struct check_on {
	pid_t pid;	  /* of the process looked at */
	uint32_t targets; /* that are asked for; they decide about the size of the control page */
};

struct check {
	const char *name;
	int (*look)(const struct check_on *on, struct sb_err *err); /* 0: yes */
	bool first; /* of the machine: nothing goes without; of a process: nothing can be seen */
};

extern const struct check check_machine_rows[], check_process_rows[];
extern const size_t check_machine_count, check_process_count;

/*
 * One row; on: NULL for the machine's. What can pass is looked at again for up to 20 ms: a process
 * that starts another program has not all of what is asked for in the midst of that.
 */
int check_look(const struct check *check, const struct check_on *on, struct sb_err *err);

/* What an attach needs of the machine, whatever is asked for. */
int check_machine_first(struct sb_err *err);

/* All rows of a process: the first that says no. */
int check_process(pid_t pid, uint32_t targets, struct sb_err *err);

/* For --mechanism int3 only: would its traps change the process's own signal state? */
int check_trap(pid_t pid, struct sb_err *err);

/* Does it run in valgrind? That translates the program's code and never runs what is mapped, so
 * that no hook in it would ever be passed. */
int check_translated(pid_t pid, struct sb_err *err);

/* Only those that `list` needs: it changes nothing. */
int check_readable(pid_t pid, struct sb_err *err);

/* Is it hooked by an sbinject, or was it left so? */
bool check_is_hooked(pid_t pid);

#endif
