/* SPDX-License-Identifier: MIT */
#ifndef SB_GLOB_H
#define SB_GLOB_H

#include <stddef.h>

/*
 * A text that every match of a glob must contain, so that a table of 300 000 names is searched for
 * a string first and the matcher runs only on the rest. glob_match() and glob_is_pattern() are in
 * symbol.h.
 */
struct glob_literal {
	char text[256];
	size_t len;
};

/* The longest run of ordinary characters; len 0 if there is none. */
void glob_longest_literal(const char *pattern, struct glob_literal *best);

typedef void glob_literal_fn(void *ctx, const char *run);

/* Calls fn for each such run (in pieces of 255 bytes), in order; returns how many there are. */
size_t glob_each_literal(const char *pattern, glob_literal_fn *fn, void *ctx);

#endif
