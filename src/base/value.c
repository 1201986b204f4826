/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned int bits;
	bool is_signed;
} types[VALUE_TYPES] = {
	[VALUE_I64] = { "i64", 64, true },    [VALUE_I8] = { "i8", 8, true },
	[VALUE_I16] = { "i16", 16, true },    [VALUE_I32] = { "i32", 32, true },
	[VALUE_U8] = { "u8", 8, false },      [VALUE_U16] = { "u16", 16, false },
	[VALUE_U32] = { "u32", 32, false },   [VALUE_U64] = { "u64", 64, false },
	[VALUE_PTR] = { "ptr", 64, false },   [VALUE_BOOL] = { "bool", 8, false },
	[VALUE_STR] = { "str", 64, false },   [VALUE_CODE] = { "code", 64, false },
	[VALUE_DATA] = { "data", 64, false },
};

const char *value_type_name(enum value_type type)
{
	return types[type].name;
}

enum value_type value_type_find(const char *name, size_t len)
{
	for (unsigned int i = 0; i < VALUE_TYPES; i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			return (enum value_type)i;
	return VALUE_TYPES;
}

static bool starts_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool value_name_ok(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!starts_name(name[i]) && (!i || name[i] < '0' || name[i] > '9'))
			return false;
	return len && len < VALUE_NAME_SIZE;
}

bool value_name_taken(const char *name)
{
	static const char *const taken[] = { "module", "kernel_name", "python",	  "thread",
					     "tid",    "lane",	      "start_ns", "dur_ns",
					     "stack",  "stack_end" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (!strcmp(name, taken[i]))
			return true;
	return false;
}

unsigned int value_bits(enum value_type type)
{
	return types[type].bits;
}

bool value_signed(enum value_type type)
{
	return types[type].is_signed;
}

bool value_is_named(enum value_type type)
{
	return type == VALUE_CODE || type == VALUE_DATA;
}

uint64_t value_extend(enum value_type type, uint64_t raw)
{
	unsigned int unused = 64 - types[type].bits;

	if (type == VALUE_BOOL)
		return (raw & 0xff) != 0;
	if (types[type].is_signed)
		return (uint64_t)((int64_t)(raw << unused) >> unused);
	return raw << unused >> unused;
}

char *value_text(enum value_type type, uint64_t value, char *buf, size_t size)
{
	if (type == VALUE_BOOL)
		snprintf(buf, size, "%s", value ? "true" : "false");
	else if (type == VALUE_PTR || value_is_named(type))
		snprintf(buf, size, "0x%" PRIx64, value);
	else if (types[type].is_signed)
		snprintf(buf, size, "%" PRId64, (int64_t)value);
	else
		snprintf(buf, size, "%" PRIu64, value);
	return buf;
}
