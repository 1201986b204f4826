/* SPDX-License-Identifier: MIT */
#ifndef SB_JSON_H
#define SB_JSON_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Names in JSON. A name (of a function, a file, a thread, a target as typed) is bytes; JSON is
 * Unicode. Every document, event and message of the control protocol uses one form: valid UTF-8 is
 * kept; each other byte 0x80 to 0xff becomes the private character U+EF80 to U+EFFF. So do the
 * bytes of these characters themselves. The text reads back to the same bytes.
 */
json_t *json_name(const char *bytes);	   /* NULL: null */
char *json_name_take(const json_t *value); /* the bytes; NULL: not a string. The caller frees. */
char *json_name_of(const json_t *object, const char *key); /* ... of a member; NULL: none */

/* The same conversions without a JSON value, for the key of a member. The caller frees. */
char *json_text(const char *bytes);
char *json_bytes(const char *text);

/*
 * The text of a document, on one line or indented, without a newline at the end; the caller frees.
 * A control character of Unicode's (U+007F to U+009F), which JSON permits and a terminal may act
 * on, is an escape.
 */
char *json_document(const json_t *value, bool indent);

/* These abort when memory runs out. json_put() and json_add() take over the reference. */
json_t *json_must(json_t *value);
void json_put(json_t *object, const char *key, json_t *value);
void json_add(json_t *array, json_t *value);

#endif
