/* SPDX-License-Identifier: MIT */
/*
 * Not fnmatch(): that follows the locale (a multibyte conversion for each call is 20 times slower
 * here, and a name that is no valid UTF-8 never matches).
 */
#include "glob.h"
#include "symbol.h"

#include <string.h>

bool glob_is_pattern(const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' && text[1])
			text++;
		else if (*text == '*' || *text == '?' || *text == '[')
			return true;
	}
	return false;
}

/* The ']' that closes the class at p ('['), or NULL: then '[' is an ordinary character. */
static const char *class_end(const char *p)
{
	p++;
	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	while (*p && *p != ']')
		p++;
	return *p ? p : NULL;
}

static bool class_has(const char *p, const char *end, unsigned char c)
{
	bool negated = p[1] == '!' || p[1] == '^', found = false;

	for (p += 1 + negated; p < end; p++) {
		unsigned char lo = (unsigned char)*p, hi = lo;

		if (p + 2 < end && p[1] == '-') {
			hi = (unsigned char)p[2];
			p += 2;
		}
		found |= lo <= c && c <= hi;
	}
	return found != negated;
}

/* Whether one element of the pattern matches the character c; *next is the element after it. */
static bool element_takes(const char *p, char c, const char **next)
{
	const char *end;

	*next = p + 1;
	if (*p == '?')
		return true;
	if (*p == '\\' && p[1]) {
		*next = p + 2;
		return p[1] == c;
	}
	if (*p == '[' && (end = class_end(p))) {
		*next = end + 1;
		return class_has(p, end, (unsigned char)c);
	}
	return *p == c;
}

/* Going back only to the last star is enough, so the cost is pattern x text at worst. */
bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *star_text = NULL, *next;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			star_text = text;
		} else if (*pattern && element_takes(pattern, *text, &next)) {
			pattern = next;
			text++;
		} else if (star) {
			pattern = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* Copies the run of literal characters at *p, escapes removed, and steps over it. */
static size_t take_literals(const char **p, char *buf, size_t size)
{
	size_t n = 0;

	while (**p && **p != '*' && **p != '?' && !(**p == '[' && class_end(*p)) && n + 1 < size) {
		if (**p == '\\' && (*p)[1])
			(*p)++;
		buf[n++] = *(*p)++;
	}
	buf[n] = '\0';
	return n;
}

size_t glob_each_literal(const char *pattern, glob_literal_fn *fn, void *ctx)
{
	char run[256];
	size_t runs = 0;

	while (*pattern) {
		const char *end;

		if (take_literals(&pattern, run, sizeof(run))) {
			runs++;
			fn(ctx, run);
			continue;
		}
		end = *pattern == '[' ? class_end(pattern) : NULL;
		pattern = end ? end + 1 : pattern + 1;
	}
	return runs;
}

static void keep_longest(void *ctx, const char *run)
{
	struct glob_literal *best = ctx;
	size_t len = strlen(run);

	if (len <= best->len)
		return;
	memcpy(best->text, run, len + 1);
	best->len = len;
}

void glob_longest_literal(const char *pattern, struct glob_literal *best)
{
	best->len = 0;
	best->text[0] = '\0';
	glob_each_literal(pattern, keep_longest, best);
}
