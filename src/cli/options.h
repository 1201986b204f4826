/* SPDX-License-Identifier: MIT */
#ifndef SB_OPTIONS_H
#define SB_OPTIONS_H

#include <stdio.h>
#include "src/run/options.h"

/*
 * The command line of a run: options and targets on the left of `--`, the command on its
 * right. One parser for all verbs; each verb says which options it knows.
 */
enum option_verb {
	VERB_RUN = 1,
	VERB_LIST = 2,
	VERB_RECOVER = 4,
	VERB_DOCTOR = 8,
	VERB_SWEEP = 16,
	VERB_ALL = 31
};

/* Errors: SB_EUSAGE, SB_ESPEC, SB_EFILE, SB_ENOPROC (--match found nobody). A command without a
 * target takes those of the environment (spec/env.h), and takes SPEED_BUMP_TARGETS out of it. */
int options_parse(int argc, char **argv, enum option_verb verb, struct options *opt,
		  struct sb_err *err);
void options_free(struct options *opt);

/* The processes whose whole command line matches, listed on stderr; ourselves and our ancestors
 * left out. Appends. SB_ENOPROC: there is none. */
int options_match(const char *glob, pid_t **pids, size_t *count, struct sb_err *err);

/* The table of options, for --help: a line each, those that the verb knows. */
void options_help(FILE *to, enum option_verb verb);

#endif
