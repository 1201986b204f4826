/* SPDX-License-Identifier: MIT */
#ifndef SB_VALUE_H
#define SB_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The types of arguments and return values that are recorded: integers, and strings that a function
 * has written. A value is kept in 64 bits as
 * value_extend() makes them: cut to the size of its type, and extended by its sign if it has one.
 */
enum value_type {
	VALUE_I64, /* the default */
	VALUE_I8,
	VALUE_I16,
	VALUE_I32,
	VALUE_U8,
	VALUE_U16,
	VALUE_U32,
	VALUE_U64,
	VALUE_PTR, /* shown in hexadecimal */
	VALUE_BOOL,
	VALUE_STR,  /* a C string: `value` is the number of its text, or nothing */
	VALUE_CODE, /* an address in code; traces have the name of the place there, as a string */
	VALUE_DATA, /* ... of data, and the name of the object, where a file has one there */
	VALUE_TYPES
};

enum {
	VALUE_MAX = 12,	      /* of one call */
	VALUE_NAME_SIZE = 32, /* with the NUL */
	VALUE_TEXT_SIZE = 24, /* holds any text of value_text() */
};

/* "i64". */
const char *value_type_name(enum value_type type);

/* The type of that name, len bytes; VALUE_TYPES: none. */
enum value_type value_type_find(const char *name, size_t len);

/* A letter or '_', then letters, digits and '_', less than VALUE_NAME_SIZE. */
bool value_name_ok(const char *name, size_t len);

/* A name that the arguments of events in trace files have already. */
bool value_name_taken(const char *name);

unsigned int value_bits(enum value_type type);
bool value_signed(enum value_type type);
/* An address of which traces have the name of what is there. */
bool value_is_named(enum value_type type);

/* What a register holds, as a value of this type. A bool is 0 or 1, by the lowest byte. */
uint64_t value_extend(enum value_type type, uint64_t raw);

/* "-1", "0x7f00", "true". Returns buf. */
char *value_text(enum value_type type, uint64_t value, char *buf, size_t size);

#endif
