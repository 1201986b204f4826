/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <string.h>

const char *value_conflict(const struct spec *spec)
{
	if (!spec->n_values)
		return NULL;
	if (spec->at)
		return "does not fit: values (arg=, ret) and at=exit or at=both exclude each "
		       "other, "
		       "since they are taken where a call begins and ends undelayed";
	if (spec->inlined)
		return "does not fit: values (arg=, ret) and inline=yes exclude each other, since "
		       "an "
		       "inlined copy has no arguments in registers";
	if (spec->time_given && !spec->timed)
		return "does not fit: values (arg=, ret) and time=no exclude each other, since "
		       "they "
		       "are those of calls that return";
	return NULL;
}

/* name, len bytes; type: the rest of the text, NULL for the default. */
static const char *add(struct spec *spec, const char *name, size_t len, uint8_t position,
		       const char *type)
{
	struct spec_value value = { .position = position, .type = VALUE_I64 };

	if (spec->kind != SPEC_SYMBOL && spec->kind != SPEC_LITERAL)
		return "belongs to the name of a native function";
	if (!value_name_ok(name, len))
		return "names no value: a name has up to 31 letters, digits and '_', no digit "
		       "first";
	memcpy(value.name, name, len);
	if (value_name_taken(value.name))
		return "has a name that the events of traces use themselves";
	if (type)
		value.type = value_type_find(type, strlen(type));
	if (value.type == VALUE_TYPES)
		return "has an unknown type";
	for (size_t i = 0; i < spec->n_values; i++)
		if (!strcmp(spec->value[i].name, value.name))
			return "gives a name twice";
	if (spec->n_values == VALUE_MAX)
		return "is a value too many: a target has at most 4, the return value included";
	spec->value[spec->n_values++] = value;
	spec->timed |= !spec->time_given;
	return value_conflict(spec);
}

const char *value_arg(struct spec *spec, const char *text)
{
	const char *colon = strchr(text, ':');
	const char *position = colon ? colon + 1 : text + strlen(text);
	size_t digits = strspn(position, "0123456789");

	if (!digits || (position[digits] && position[digits] != ':') || *position == '0')
		return "has no position: the first argument is 1";
	if (digits > 1 || *position > '6')
		return "is not in a register: only the first 6 integer arguments are";
	return add(spec, text, (size_t)(colon - text), (uint8_t)(*position - '0'),
		   position[1] ? position + 2 : NULL);
}

const char *value_ret(struct spec *spec, const char *text)
{
	const char *colon = text ? strchr(text, ':') : NULL;

	if (!text || (!colon && value_type_find(text, strlen(text)) != VALUE_TYPES))
		return add(spec, "ret", 3, 0, text);
	return add(spec, text, colon ? (size_t)(colon - text) : strlen(text), 0,
		   colon ? colon + 1 : NULL);
}

const char *value_sum(struct spec *spec, const char *text)
{
	for (size_t i = 0; i < spec->n_values; i++) {
		struct spec_value *value = &spec->value[i];

		if (strcmp(value->name, text) != 0)
			continue;
		if (value->type == VALUE_PTR)
			return "sums a pointer";
		if (value->sum)
			return "is given twice for one target";
		value->sum = true;
		return NULL;
	}
	return "names no value: the arg= or ret of that name must stand before it";
}
