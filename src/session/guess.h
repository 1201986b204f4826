/* SPDX-License-Identifier: MIT */
#ifndef SB_GUESS_H
#define SB_GUESS_H

#include <stdbool.h>
#include "src/base/maps.h"
#include "src/spec/spec.h"

/*
 * What was probably meant, where a module matches nothing or a command line makes no sense. Only
 * for messages: nothing is decided by it. Reads the file system, changes nothing.
 */
enum guess {
	GUESS_NONE,    /* hint: the near names, or "" */
	GUESS_WRITTEN, /* the target is written in another way: no process will ever map that */
	GUESS_AWAITED, /* the file is there, and may be loaded later */
};

/* A target whose module nothing in the process matches; near: the resolver's hint, or "". */
enum guess guess_target(const struct spec *spec, pid_t pid, const struct maps *maps,
			const char *near, char *hint, size_t size);

/* The first word that is a program's name and nothing that sbinject takes: a missing `--` before
 * it. NULL: there is none. */
const char *guess_command(char *const *words, size_t n);

#endif
