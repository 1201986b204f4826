/* SPDX-License-Identifier: MIT */
#ifndef SB_OPTIONS_H
#define SB_OPTIONS_H

#include <stdio.h>
#include "src/run/options.h"

/*
 * The command line of a run: options and targets to the left of `--`, the command to its right. All
 * verbs use this parser; each option has the verbs that accept it.
 */
enum option_verb {
	VERB_RUN = 1,
	VERB_LIST = 2,
	VERB_RECOVER = 4,
	VERB_DOCTOR = 8,
	VERB_SWEEP = 16,
	VERB_TRACE = 32, /* a run whose targets are timed */
	VERB_EXPLAIN = 64,
	VERB_FIND = 128,
	VERB_RUNS = VERB_RUN | VERB_TRACE,
	VERB_ALL = 255
};

/* Errors: SB_EUSAGE, SB_ESPEC, SB_EFILE, SB_ENOPROC (--match found no process). A command without a
 * target gets the targets of the environment (spec/env.h); SPEED_BUMP_TARGETS is then removed from
 * it. */
int options_parse(int argc, char **argv, enum option_verb verb, struct options *opt,
		  struct sb_err *err);
void options_free(struct options *opt);

/* Finds the processes whose whole command line matches, except ourselves and our ancestors. Lists
 * them on stderr. Appends. SB_ENOPROC: there is none. */
int options_match(const char *glob, pid_t **pids, size_t *count, struct sb_err *err);

/* The table of options for --help: one line for each option that the verb accepts. */
void options_help(FILE *to, enum option_verb verb);

#endif
