/* SPDX-License-Identifier: MIT */
#ifndef SB_MUST_H
#define SB_MUST_H

#include <stdlib.h>
#include <string.h>

/*
 * Allocations that abort on failure. Use them for the small tables of this program, never for a
 * size that comes from a file or a target.
 */
static inline void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static inline void *must_calloc(size_t n, size_t size)
{
	return must(calloc(n ? n : 1, size ? size : 1));
}

static inline void *must_realloc(void *old, size_t size)
{
	return must(realloc(old, size ? size : 1));
}

static inline char *must_strdup(const char *s)
{
	return must(strdup(s));
}

#endif
