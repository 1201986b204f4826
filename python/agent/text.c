/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <string.h>

/* The ']' that closes the class at p ('['), or NULL. */
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

const char *glob_last_part(const char *pattern, bool *whole)
{
	const char *tail = pattern + strcspn(pattern, "*?[]\\"), *dot;

	*whole = !*tail; /* no special character at all */
	if (*whole)
		tail = pattern;
	else
		for (const char *p = tail; *p; p++)
			if (strchr("*?[]\\", *p))
				tail = p + 1;
	dot = strrchr(tail, '.');
	if (dot)
		*whole = true;
	return dot ? dot + 1 : tail;
}

const char *last_part(const char *qualname)
{
	const char *dot = strrchr(qualname, '.');

	return dot ? dot + 1 : qualname;
}
