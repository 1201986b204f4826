/* SPDX-License-Identifier: MIT */
#ifndef SB_COMMAND_H
#define SB_COMMAND_H

#include <stdio.h>
#include "src/base/err.h"

/*
 * The verbs, one file each. Help, completion and the check of the man page's synopsis use the table
 * in main.c. run() returns the exit status; argv[0] is the verb.
 */
struct command {
	const char *name;    /* "" for a run */
	const char *summary; /* one line */
	const char *usage;   /* one or more lines, each without "sbinject " */
	int (*run)(const struct command *cmd, int argc, char **argv);
	void (*help)(FILE *to);
};

extern const struct command cmd_run, cmd_trace, cmd_list, cmd_sweep, cmd_explain, cmd_find,
	cmd_compare, cmd_report, cmd_recover, cmd_doctor;

/* All verbs, the run first, for command_print_verbs(). The table is borrowed for good. */
void command_table(const struct command *const *table, size_t n);

/* "sbinject: what; remedy" on stderr. */
void command_print_error(const struct sb_err *err);
void command_print_verbs(FILE *to);
void command_print_usage(FILE *to, const struct command *cmd);

#endif
