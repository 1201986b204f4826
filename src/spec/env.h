/* SPDX-License-Identifier: MIT */
#ifndef SB_SPEC_ENV_H
#define SB_SPEC_ENV_H

#include "spec.h"

/*
 * The environment variables of Speed Bump, which its users have in scripts and pods:
 *
 *	SPEED_BUMP_TARGETS	a file of patterns; unset or empty: no targets
 *	SPEED_BUMP_DELAY_NS	1000
 *	SPEED_BUMP_FREQUENCY	1	each Nth call
 *	SPEED_BUMP_START_MS	0	after the process's start
 *	SPEED_BUMP_DURATION_MS	0	without end
 *
 * An empty number means its default. Numbers may have blanks around them and '_' between digits, as
 * Python's int() accepts them.
 *
 * A pattern is MODULE_GLOB:QUALNAME_GLOB, one a line; blanks around either part are ignored. Lines
 * that start with '#' are comments. A line that occurs twice is one target. A function that matches
 * two patterns is delayed once, for the first pattern.
 */
struct spec_env {
	const char *path; /* of the patterns' file; NULL: no targets */
	uint64_t delay_ns, every, start_ns, for_ns;
};

typedef char *spec_getenv_fn(const char *name);

/* Reads the numbers, but only if there is a path. Errors: SB_EUSAGE. */
int spec_env_read(spec_getenv_fn *get, struct spec_env *env, struct sb_err *err);

/* Appends one Python target for each pattern, without delay or key. Errors carry "NAME:LINE: "
 * and append nothing. A text without any pattern appends nothing and is not an error. Errors:
 * SB_ESPEC. */
int spec_parse_patterns(const char *text, size_t len, const char *name, struct spec_list *out,
			struct sb_err *err);

/* As spec_parse_patterns(), for the file env->path. Errors: SB_EFILE too. */
int spec_env_patterns(const struct spec_env *env, struct spec_list *out, struct sb_err *err);

#endif
