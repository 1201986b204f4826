/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 12 /* the longest form of one character: \u with 6 digits, and NUL */

struct range {
	uint32_t first, last;
};

/* Characters that act on a terminal, or on the order of the characters around them. */
static const struct range unsafe_points[] = {
	{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0x061c, 0x061c },
	{ 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
	{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
};

/* East Asian wide blocks, coarsely: enough to keep columns straight. */
static const struct range wide_points[] = {
	{ 0x1100, 0x115f }, { 0x2e80, 0xa4cf },	  { 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff }, { 0xfe30, 0xfe6f },	  { 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 }, { 0x1f300, 0x1faff }, { 0x20000, 0x3fffd },
};

static const struct range combining_points[] = {
	{ 0x0300, 0x036f },
	{ 0x1ab0, 0x1aff },
	{ 0x20d0, 0x20ff },
	{ 0xfe00, 0xfe0f },
};

#define IN(point, table) in_ranges(point, table, sizeof(table) / sizeof((table)[0]))

static bool in_ranges(uint32_t point, const struct range *range, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (point >= range[i].first && point <= range[i].last)
			return true;
	return false;
}

size_t text_utf8(const char *s, uint32_t *point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* below: overlong */
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

	if (!u[0] || !len || u[0] > 0xf4)
		return 0;
	*point = len == 1 ? u[0] : u[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((u[i] & 0xc0) != 0x80) /* the terminating NUL ends here, too */
			return 0;
		*point = *point << 6 | (u[i] & 0x3f);
	}
	if (*point < least[len] || *point > 0x10ffff || (*point >= 0xd800 && *point <= 0xdfff))
		return 0;
	return len;
}

static const char *short_escape(uint32_t point)
{
	return point == '\n' ? "\\n" : point == '\t' ? "\\t" : point == '\r' ? "\\r" : NULL;
}

/* Writes the shown form of the character (or stray byte) at s; returns its length in s. */
static size_t show_one(const char *s, char out[SHOWN_MAX])
{
	uint32_t point = 0;
	size_t len = text_utf8(s, &point);

	if (!len) {
		snprintf(out, SHOWN_MAX, "\\x%02x", (unsigned char)*s);
		return 1;
	}
	if (!IN(point, unsafe_points)) {
		memcpy(out, s, len);
		out[len] = '\0';
	} else if (short_escape(point)) {
		strcpy(out, short_escape(point));
	} else {
		snprintf(out, SHOWN_MAX, point < 0x80 ? "\\x%02x" : "\\u%04x", point);
	}
	return len;
}

char *text_dup(const char *s)
{
	char *copy = s ? strdup(s) : NULL;

	if (s && !copy)
		abort();
	return copy;
}

char *text_show(const char *s)
{
	char *shown, *to;

	if (!s)
		return text_dup("-");
	shown = malloc(strlen(s) * 4 + SHOWN_MAX); /* no byte becomes longer than \xff */
	if (!shown)
		abort();
	for (to = shown, *to = '\0'; *s; to += strlen(to))
		s += show_one(s, to);
	return shown;
}

char *text_quote(const char *s, char *buf, size_t size)
{
	size_t used = 0, fits = 0; /* fits: the part that leaves room for the dots */
	char one[SHOWN_MAX];

	for (buf[0] = '\0'; *s;) {
		size_t len;

		s += show_one(s, one);
		len = strlen(one);
		if (used + len >= size) {
			snprintf(buf + fits, size - fits, "...");
			break;
		}
		memcpy(buf + used, one, len + 1);
		used += len;
		if (used + sizeof("...") <= size)
			fits = used;
	}
	return buf;
}

/* Length and columns of the character at s; s is not at its end. */
static size_t measure_one(const char *s, size_t *columns)
{
	uint32_t point = 0;
	size_t len;

	*columns = 1;
	if (*s > 0) /* ASCII */
		return 1;
	len = text_utf8(s, &point);
	*columns = IN(point, wide_points) ? 2 : IN(point, combining_points) ? 0 : 1;
	return len ? len : 1;
}

size_t text_width(const char *s)
{
	size_t total = 0, columns;

	for (; *s; total += columns)
		s += measure_one(s, &columns);
	return total;
}

size_t text_clip(const char *s, size_t columns)
{
	size_t bytes = 0, took, one;

	while (s[bytes]) {
		took = measure_one(s + bytes, &one);
		if (one > columns)
			break;
		columns -= one;
		bytes += took;
	}
	return bytes;
}

char *text_middle(const char *s, size_t columns)
{
	size_t width = text_width(s), keep, head, tail = 0, one;
	char *cut = NULL;

	if (width <= columns)
		return text_dup(s);
	keep = columns > 3 ? columns - 3 : 0;
	head = text_clip(s, keep / 3); /* the end holds the function's name: keep more of it */
	while (width > keep - keep / 3) {
		tail += measure_one(s + tail, &one);
		width -= one;
	}
	if (asprintf(&cut, "%.*s%.*s%s", (int)head, s, columns < 3 ? (int)columns : 3, "...",
		     s + tail) < 0)
		abort();
	return cut;
}

void text_role(const char *title, char *buf, size_t size)
{
	size_t used = 0;

	for (const char *c = title; *c && used + 1 < size; c++) {
		if (*c < '0' || *c > '9')
			buf[used++] = *c;
		else if (!used || buf[used - 1] != '#')
			buf[used++] = '#';
	}
	buf[used] = '\0';
}
