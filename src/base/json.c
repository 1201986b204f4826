/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "must.h"
#include "text.h"

/* U+EF80 to U+EFFF represent the bytes 0x80 to 0xff. (jansson refuses lone surrogates, which Python
 * uses.) */
#define BYTE_POINT 0xef00u

static bool is_byte_point(uint32_t point)
{
	return point >= BYTE_POINT + 0x80 && point <= BYTE_POINT + 0xff;
}

char *json_text(const char *s)
{
	char *text = must(malloc(strlen(s) * 3 + 1)), *to = text;

	while (*s) {
		uint32_t point = 0;
		size_t len = text_utf8(s, &point);

		if (len && !is_byte_point(point)) {
			memcpy(to, s, len);
			to += len;
			s += len;
			continue;
		}
		*to++ = '\xee';
		*to++ = (char)(0x80 | ((BYTE_POINT | (unsigned char)*s) >> 6 & 0x3f));
		*to++ = (char)(0x80 | ((unsigned char)*s++ & 0x3f));
	}
	*to = '\0';
	return text;
}

char *json_bytes(const char *s)
{
	char *bytes = must(malloc(strlen(s) + 1)), *to = bytes;

	while (*s) {
		uint32_t point = 0;
		size_t len = text_utf8(s, &point);

		if (is_byte_point(point)) {
			*to++ = (char)(point & 0xff);
		} else {
			len = len ? len : 1; /* jansson gives valid UTF-8; an invalid byte still
						advances by one */
			memcpy(to, s, len);
			to += len;
		}
		s += len;
	}
	*to = '\0';
	return bytes;
}

json_t *json_name(const char *s)
{
	char *text = s ? json_text(s) : NULL;
	json_t *value = text ? json_string(text) : json_null();

	free(text);
	return value;
}

char *json_name_take(const json_t *value)
{
	return json_is_string(value) ? json_bytes(json_string_value(value)) : NULL;
}

char *json_name_of(const json_t *object, const char *key)
{
	return json_name_take(json_object_get(object, key));
}

/* U+007F to U+009F at s: its bytes in UTF-8; 0: another character. */
static size_t control_at(const char *s, unsigned int *code)
{
	const unsigned char *u = (const unsigned char *)s;

	*code = u[0] == 0x7f ? u[0] : u[1];
	if (u[0] == 0x7f)
		return 1;
	return u[0] == 0xc2 && u[1] >= 0x80 && u[1] <= 0x9f ? 2 : 0;
}

char *json_document(const json_t *value, bool indent)
{
	char *plain = must(json_dumps(value, indent ? JSON_INDENT(2) : JSON_COMPACT)), *text, *to;
	size_t controls = 0, n;
	unsigned int code;

	for (const char *s = plain; *s; s++)
		controls += control_at(s, &code) > 0;
	if (!controls)
		return plain;
	text = to = must(malloc(strlen(plain) + controls * strlen("\\u0000") + 1));
	for (const char *s = plain; *s; s += n ? n : 1) {
		n = control_at(s, &code);
		if (n)
			to += sprintf(to, "\\u%04x", code);
		else
			*to++ = *s;
	}
	*to = '\0';
	free(plain);
	return text;
}

json_t *json_must(json_t *value)
{
	return must(value);
}

void json_put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, json_must(value)))
		abort();
}

void json_add(json_t *array, json_t *value)
{
	if (json_array_append_new(array, json_must(value)))
		abort();
}
