/* SPDX-License-Identifier: MIT */
#ifndef SB_SPEC_ENV_H
#define SB_SPEC_ENV_H

#include "spec.h"

/*
 * The environment that Speed Bump's users have in their scripts and pods:
 *
 *	SPEED_BUMP_TARGETS	a file of patterns; unset or empty: nothing is asked for
 *	SPEED_BUMP_DELAY_NS	1000
 *	SPEED_BUMP_FREQUENCY	1	each Nth call
 *	SPEED_BUMP_START_MS	0	after the process's start
 *	SPEED_BUMP_DURATION_MS	0	without end
 *
 * An empty number is its default. Numbers may have blanks around them and '_' between digits,
 * as Python's int() takes them.
 *
 * A pattern is MODULE_GLOB:QUALNAME_GLOB, one a line, blanks around either part ignored; lines
 * that start with '#' are comments. A line there twice is one target, and a function that two
 * patterns match is delayed once, for the first.
 */
struct spec_env {
	const char *path; /* of the patterns' file; NULL: nothing is asked for */
	uint64_t delay_ns, every, start_ns, for_ns;
};

typedef char *spec_getenv_fn(const char *name);

/* Reads the numbers; they are not looked at where there is no path. SB_EUSAGE. */
int spec_env_read(spec_getenv_fn *get, struct spec_env *env, struct sb_err *err);

/* Appends a Python target a pattern, without delay or key. Errors carry "NAME:LINE: " and
 * append nothing. A text without any pattern appends nothing and is no error. SB_ESPEC. */
int spec_parse_patterns(const char *text, size_t len, const char *name, struct spec_list *out,
			struct sb_err *err);

/* The same of env->path. SB_EFILE too. */
int spec_env_patterns(const struct spec_env *env, struct spec_list *out, struct sb_err *err);

#endif
