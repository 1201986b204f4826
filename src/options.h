/* SPDX-License-Identifier: MIT */
#ifndef SB_OPTIONS_H
#define SB_OPTIONS_H

#include <stdio.h>
#include "result.h"
#include "session.h"

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

struct options {
	struct session_config session;
	char *backend;
	bool require_hits, by_process, quiet, verbose, help, version;
	uint64_t default_ns; /* delay of targets without one */
	bool from_env;	     /* --from-env */
	bool background;
	int status_fd;	/* lines for programs; 0: none */
	int ready_pipe; /* set by --daemon: a byte ends the wait of who started us; 0 */
	uint64_t interval_ns;
	char *metrics, *metrics_file, *events; /* --metrics, --metrics-file, --events */
	bool metrics_by_pid;
	char *json, *jsonl;
	struct result_tag *tag;
	size_t n_tags;
	char **command; /* NULL: none; NULL-terminated */
};

/* Errors: SB_EUSAGE, SB_ESPEC, SB_EFILE, SB_ENOPROC (--match found nobody). A command without a
 * target takes those of the environment (spec-env.h), and takes SPEED_BUMP_TARGETS out of it. */
int options_parse(int argc, char **argv, enum option_verb verb, struct options *opt,
		  struct sb_err *err);
void options_free(struct options *opt);

/* The processes whose whole command line matches, listed on stderr; ourselves and our ancestors
 * left out. Appends. SB_ENOPROC: there is none. */
int options_match(const char *glob, pid_t **pids, size_t *count, struct sb_err *err);

/* The table of options, for --help: a line each, those that the verb knows. */
void options_help(FILE *to, enum option_verb verb);

#endif
