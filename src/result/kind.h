/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_KIND_H
#define SB_RESULT_KIND_H

#include "result.h"
#include "src/base/json.h"
#include "src/base/must.h"

/*
 * How one member of a struct becomes a JSON value and is read back: used by result/json.c only.
 * A kind is a pair of functions; a field says where a member is and of what kind; a shape is a
 * struct's fields. Writing and reading walk the same tables, so what is written is read again.
 */
struct field;

struct shape {
	size_t size;
	const struct field *field;
	size_t n;
};

struct kind {
	json_t *(*put)(const struct field *field, const char *base, const struct result *res);
	/* Returns NULL, or what it expected; "" when err is set already. */
	const char *(*get)(const struct field *field, char *base, const json_t *value,
			   const struct result *res, struct sb_err *err);
};

struct field {
	const char *name;
	const struct kind *kind;
	size_t at;		   /* of the member in its struct */
	bool optional;		   /* left out instead of null */
	const char *unknown;	   /* the reason beside a null, as NAME_reason */
	size_t count_at;	   /* arrays: of the size_t that counts them */
	const struct shape *shape; /* arrays of structs: of one */
};

/* The parameters of put and get; a kind that needs only some of them is the rule. */
#define KIND_PUT_ARGS                                                        \
	const struct field *field __attribute__((unused)), const char *base, \
		const struct result *res __attribute__((unused))
#define KIND_GET_ARGS                                                                       \
	const struct field *field __attribute__((unused)), char *base, const json_t *value, \
		const struct result *res __attribute__((unused)),                           \
		struct sb_err *err __attribute__((unused))

extern const struct kind kind_string;  /* char *; NULL is null */
extern const struct kind kind_u64;     /* above 2^63 - 1: a string of digits */
extern const struct kind kind_extent;  /* uint64_t; 0 is null */
extern const struct kind kind_size;    /* size_t */
extern const struct kind kind_uint;    /* unsigned int */
extern const struct kind kind_pid;     /* pid_t */
extern const struct kind kind_exit;    /* int; -1 is null */
extern const struct kind kind_real;    /* double; what is not finite is null, and read as NaN */
extern const struct kind kind_address; /* uint64_t as "0x..."; 0 is null */
extern const struct kind kind_outcome; /* enum result_outcome */
extern const struct kind kind_time;    /* struct timespec_ns as ISO 8601; the epoch is null */

bool kind_pid_read(const json_t *value, pid_t *pid);

#endif
