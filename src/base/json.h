/* SPDX-License-Identifier: MIT */
#ifndef SB_JSON_H
#define SB_JSON_H

#include <jansson.h>

/*
 * Names in JSON. A name (of a function, a file, a thread, a target as it was typed) is bytes; JSON
 * is Unicode. Every document, event and message of the control protocol has them in one form: what
 * is UTF-8 as it is, each other byte 0x80 to 0xff as the private character U+EF80 to U+EFFF (and so
 * the bytes of such a character themselves). It reads back to the same bytes.
 */
json_t *json_name(const char *bytes);	   /* NULL: null */
char *json_name_take(const json_t *value); /* the bytes; NULL: no string. The caller frees. */
char *json_name_of(const json_t *object, const char *key); /* ... of a member; NULL: not there */

/* The same without a value around it, as for a member's key; the caller frees. */
char *json_text(const char *bytes);
char *json_bytes(const char *text);

/* Out of memory aborts. json_put() and json_add() take the reference. */
json_t *json_must(json_t *value);
void json_put(json_t *object, const char *key, json_t *value);
void json_add(json_t *array, json_t *value);

#endif
