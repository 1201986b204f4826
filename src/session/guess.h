/* SPDX-License-Identifier: MIT */
#ifndef SB_GUESS_H
#define SB_GUESS_H

#include <stdbool.h>
#include "src/base/maps.h"
#include "src/spec/spec.h"

/*
 * What the user probably meant, if a module matches nothing or a command line makes no sense. Used
 * in messages only: no decision depends on it. Reads the file system, changes nothing.
 */
enum guess {
	GUESS_NONE,    /* hint: similar names, or "" */
	GUESS_WRITTEN, /* the target has a wrong form: no process will ever map such a module */
	GUESS_AWAITED, /* the file exists and may be loaded later */
};

/* For a target whose module matches nothing in the process. near: the resolver's hint, or "". */
enum guess guess_target(const struct spec *spec, pid_t pid, const struct maps *maps,
			const char *near, char *hint, size_t size);

/* The first word that is a program's name and nothing that sbinject accepts: a `--` is probably
 * missing before it. NULL: there is none. */
const char *guess_command(char *const *words, size_t n);

#endif
