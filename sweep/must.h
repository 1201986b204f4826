/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_MUST_H
#define SWEEP_MUST_H

#include <stdlib.h>
#include <string.h>

/* Memory that is there: a sweep holds little, and without that it has nothing to say. */
static inline void *must_calloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

static inline void *must_realloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		abort();
	return p;
}

static inline char *must_strdup(const char *s)
{
	char *p = strdup(s);

	if (!p)
		abort();
	return p;
}

#endif
