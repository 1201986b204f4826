/* SPDX-License-Identifier: MIT */
#include "kind.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "src/base/text.h"

/* Simple kinds */

static json_t *string_put(KIND_PUT_ARGS)
{
	return json_name(*(char *const *)(base + field->at));
}

static const char *string_get(KIND_GET_ARGS)
{
	if (!json_is_string(value) && !json_is_null(value))
		return "a string";
	*(char **)(base + field->at) = json_name_take(value);
	return NULL;
}

/* jansson's integers end at 2^63 - 1; a larger number is a string of digits. */
json_t *kind_u64_new(uint64_t n)
{
	char digits[24];

	if (n <= INT64_MAX)
		return json_integer((json_int_t)n);
	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	return json_string(digits);
}

bool kind_u64_read(const json_t *value, uint64_t *n)
{
	const char *s = json_string_value(value);
	json_int_t i = json_integer_value(value);

	*n = (uint64_t)i;
	if (!s)
		return json_is_integer(value) && i >= 0;
	for (*n = 0; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (uint64_t)(*s - '0'), n))
			return false;
	return !*s && *n > INT64_MAX; /* a smaller number has one form only */
}

static json_t *u64_put(KIND_PUT_ARGS)
{
	return kind_u64_new(*(const uint64_t *)(base + field->at));
}

static const char *u64_get(KIND_GET_ARGS)
{
	return kind_u64_read(value, (uint64_t *)(base + field->at)) ? NULL : "a whole number";
}

/* 0 is an unknown size. */
static json_t *extent_put(KIND_PUT_ARGS)
{
	uint64_t n = *(const uint64_t *)(base + field->at);

	return n ? kind_u64_new(n) : json_null();
}

static const char *extent_get(KIND_GET_ARGS)
{
	return json_is_null(value) ? NULL : u64_get(field, base, value, res, err);
}

static json_t *flag_put(KIND_PUT_ARGS)
{
	return *(const bool *)(base + field->at) ? json_true() : json_null();
}

static const char *flag_get(KIND_GET_ARGS)
{
	*(bool *)(base + field->at) = json_is_true(value);
	return json_is_boolean(value) || json_is_null(value) ? NULL : "true or false";
}

static json_t *size_put(KIND_PUT_ARGS)
{
	return kind_u64_new(*(const size_t *)(base + field->at));
}

static const char *size_get(KIND_GET_ARGS)
{
	uint64_t n;

	if (!kind_u64_read(value, &n) || n > SIZE_MAX)
		return "a whole number";
	*(size_t *)(base + field->at) = (size_t)n;
	return NULL;
}

static json_t *uint_put(KIND_PUT_ARGS)
{
	return json_integer(*(const unsigned int *)(base + field->at));
}

static const char *uint_get(KIND_GET_ARGS)
{
	uint64_t n;

	if (!kind_u64_read(value, &n) || n > UINT_MAX)
		return "a whole number";
	*(unsigned int *)(base + field->at) = (unsigned int)n;
	return NULL;
}

bool kind_pid_read(const json_t *value, pid_t *pid)
{
	json_int_t n = json_integer_value(value);

	*pid = (pid_t)n;
	return json_is_integer(value) && n >= 0 && n <= INT_MAX;
}

static json_t *pid_put(KIND_PUT_ARGS)
{
	return json_integer(*(const pid_t *)(base + field->at));
}

static const char *pid_get(KIND_GET_ARGS)
{
	return kind_pid_read(value, (pid_t *)(base + field->at)) ? NULL : "a process id";
}

static json_t *limit_put(KIND_PUT_ARGS)
{
	pid_t pid = *(const pid_t *)(base + field->at);

	return pid ? json_integer(pid) : json_null();
}

/* sbinject's exit status; -1 is unknown. */
static json_t *exit_put(KIND_PUT_ARGS)
{
	int status = *(const int *)(base + field->at);

	return status == -1 ? json_null() : json_integer(status);
}

static const char *exit_get(KIND_GET_ARGS)
{
	json_int_t n = json_is_null(value) ? -1 : json_integer_value(value);

	if ((!json_is_integer(value) && !json_is_null(value)) || n < INT_MIN || n > INT_MAX)
		return "an exit status";
	*(int *)(base + field->at) = (int)n;
	return NULL;
}

static json_t *real_put(KIND_PUT_ARGS)
{
	double n = *(const double *)(const void *)(base + field->at);

	return isfinite(n) ? json_real(n) : json_null();
}

static const char *real_get(KIND_GET_ARGS)
{
	if (!json_is_number(value) && !json_is_null(value))
		return "a number";
	*(double *)(void *)(base + field->at) = json_is_null(value) ? NAN :
								      json_number_value(value);
	return NULL;
}

/* Addresses are strings: most readers of JSON round integers above 2^53. 0 is unknown. */
static json_t *address_put(KIND_PUT_ARGS)
{
	uint64_t address = *(const uint64_t *)(base + field->at);
	char hex[24];

	snprintf(hex, sizeof(hex), "0x%" PRIx64, address);
	return address ? json_string(hex) : json_null();
}

static const char *address_get(KIND_GET_ARGS)
{
	const char *s = json_string_value(value);
	size_t digits = s && !strncmp(s, "0x", 2) ? strspn(s + 2, "0123456789abcdefABCDEF") : 0;

	if (json_is_null(value))
		return NULL;
	if (!digits || digits > 16 || s[2 + digits])
		return "an address (\"0x...\")";
	*(uint64_t *)(base + field->at) = strtoull(s + 2, NULL, 16);
	return NULL;
}

static json_t *outcome_put(KIND_PUT_ARGS)
{
	return json_name(result_outcome_name(*(const enum result_outcome *)(base + field->at)));
}

static const char *outcome_get(KIND_GET_ARGS)
{
	const char *name = json_string_value(value), *known;

	for (int i = 0; name && (known = result_outcome_name((enum result_outcome)i)); i++) {
		if (strcmp(name, known) != 0)
			continue;
		*(enum result_outcome *)(base + field->at) = (enum result_outcome)i;
		return NULL;
	}
	return "an outcome";
}

/* Times: ISO 8601, UTC, nine decimals of a second. The epoch itself means unknown. */
#define YEARS_END 253402300800 /* the first second of the year 10000 */

/* False: the year has not four digits, or it is the epoch. */
static bool time_write(const struct timespec_ns *at, char text[48])
{
	time_t s = (time_t)at->s;
	struct tm tm;
	size_t len;

	if ((!at->s && !at->ns) || at->s < 0 || at->s >= YEARS_END || at->ns >= 1000000000)
		return false;
	len = strftime(text, 32, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));
	snprintf(text + len, 48 - len, ".%09uZ", (unsigned int)at->ns);
	return true;
}

static json_t *time_put(KIND_PUT_ARGS)
{
	char text[48];

	return time_write((const void *)(base + field->at), text) ? json_string(text) : json_null();
}

static const char *time_get(KIND_GET_ARGS)
{
	struct timespec_ns *at = (void *)(base + field->at);
	const char *s = json_string_value(value), *rest;
	struct tm tm = { 0 };
	char again[48];

	if (json_is_null(value))
		return NULL;
	rest = s ? strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (rest && *rest == '.') {
		at->s = timegm(&tm);
		at->ns = (uint32_t)strtoul(rest + 1, NULL, 10);
		/* These functions accept too much: the time must give the same text when it is
		 * written again. */
		if (time_write(at, again) && !strcmp(s, again))
			return NULL;
	}
	return "a time (YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ)";
}

#define KIND(name) const struct kind kind_##name = { name##_put, name##_get }

KIND(string);
KIND(u64);
KIND(extent);
KIND(flag);
KIND(size);
KIND(uint);
KIND(pid);
const struct kind kind_limit = { limit_put, pid_get };
KIND(exit);
KIND(real);
KIND(address);
KIND(outcome);
KIND(time);
