/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_KIND_H
#define SB_RESULT_KIND_H

#include "result.h"
#include "src/base/json.h"
#include "src/base/must.h"

/*
 * How a member of a struct becomes a JSON value, and how it is read back. Only result/json.c uses
 * this. A kind is a pair of functions. A field gives the position and the kind of a member. A shape
 * is the fields of a struct. Writing and reading use the same tables, so they agree.
 */
struct field;

struct shape {
	size_t size;
	const struct field *field;
	size_t n;
};

struct kind {
	json_t *(*put)(const struct field *field, const char *base, const struct result *res);
	/* Returns NULL, or a description of the expected value; "" if err is already set. */
	const char *(*get)(const struct field *field, char *base, const json_t *value,
			   const struct result *res, struct sb_err *err);
};

struct field {
	const char *name;
	const struct kind *kind;
	size_t at;		   /* of the member in its struct */
	bool optional;		   /* left out instead of null */
	const char *unknown;	   /* the reason for a null, written as NAME_reason */
	size_t count_at;	   /* arrays: offset of the size_t that counts them */
	const struct shape *shape; /* arrays of structs: the shape of one element */
};

/* The parameters of put and get; most kinds need only some of them. */
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
extern const struct kind kind_flag;    /* bool; false is null */
extern const struct kind kind_size;    /* size_t */
extern const struct kind kind_uint;    /* unsigned int */
extern const struct kind kind_pid;     /* pid_t */
extern const struct kind kind_limit;   /* pid_t; 0 is null */
extern const struct kind kind_exit;    /* int; -1 is null */
extern const struct kind kind_real;    /* double; not finite is null, and is read as NaN */
extern const struct kind kind_address; /* uint64_t as "0x..."; 0 is null */
extern const struct kind kind_outcome; /* enum result_outcome */
extern const struct kind kind_time;    /* struct timespec_ns as ISO 8601; the epoch is null */
extern const struct kind kind_figures; /* struct result_figure *; none is null (figures.c) */
extern const struct kind kind_times;   /* struct result_times; not known is null (times.c) */

bool kind_pid_read(const json_t *value, pid_t *pid);

/* A number as kind_u64 writes and reads it. */
json_t *kind_u64_new(uint64_t n);
bool kind_u64_read(const json_t *value, uint64_t *n);

#endif
