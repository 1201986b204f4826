/* SPDX-License-Identifier: MIT */
#ifndef SB_SUGGEST_H
#define SB_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The names nearest to a name that was not found. suggest_init(), suggest_offer() for each
 * candidate, then suggest_print(), which also frees.
 */
#define SUGGEST_BEST   3
#define SUGGEST_LENGTH 96

struct suggester {
	const char *name;
	size_t len;
	unsigned int limit; /* names further away are not near */
	struct suggestion {
		char *text;
		unsigned int far;
	} best[SUGGEST_BEST];
	size_t count;
};

/* name is kept, not copied. False where it is empty or too long: then nothing is near. */
bool suggest_init(struct suggester *s, const char *name, size_t len);
/* The same for a symbol as the user writes it; false for a pattern, too. */
bool suggest_name(struct suggester *s, const char *name);
void suggest_offer(struct suggester *s, const char *text, size_t len);

/* "did you mean 'a', 'b'?" or "" into buf (size at least 1). */
void suggest_print(struct suggester *s, char *buf, size_t size);

#endif
