/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <string.h>

const char *value_conflict(const struct spec *spec)
{
	if (!spec->n_values && !spec->arguments)
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

/* The words of a call that are not in registers are those of one place: the stack, or the memory of
 * one argument. */
static bool is_elsewhere(const struct spec_value *v)
{
	return v->memory || (v->position > SPEC_REGISTERS && v->position != SPEC_CALLER);
}

static bool elsewhere(const struct spec_value *a, const struct spec_value *b)
{
	return is_elsewhere(a) && is_elsewhere(b) &&
	       (a->result || b->result || a->text || b->text || a->memory != b->memory ||
		(a->memory && a->position != b->position));
}

static const char *fits(const struct spec *spec, const struct spec_value *value)
{
	unsigned int size = value_bits(value->type) / 8;

	if (value->offset % 8 + size > 8)
		return "does not lie in one word of 8 bytes: behind +4, and behind @4, @12 and so "
		       "on, a type has at most 4 bytes";
	for (size_t i = 0; i < spec->n_values; i++)
		if (elsewhere(&spec->value[i], value))
			return "does not fit: a target has arguments from the 7th on, or the "
			       "memory of one argument";
	return NULL;
}

/* name, len bytes; value: of an argument, where it is; type: its name, NULL for the default. */
static const char *add(struct spec *spec, const char *name, size_t len, struct spec_value value,
		       const char *type)
{
	const char *why;

	value.type = VALUE_I64;
	if (spec->kind != SPEC_SYMBOL && spec->kind != SPEC_LITERAL && !spec_in_kernel(spec))
		return "belongs to the name of a native function";
	if (spec_is_begun(spec))
		return spec->kind == SPEC_IOCTL ?
			       "is not for ioctl: what a request asks for is recorded as it is" :
			       "is not for interrupt: and offcpu:, whose values are always "
			       "recorded";
	if (spec_in_kernel(spec) &&
	    (value.memory || value.result || value.text || value.position == SPEC_CALLER))
		return "is not for the kernel: only whole arguments are recorded there";
	if (spec->kind == SPEC_TRACEPOINT && !value.position)
		return "does not fit: a tracepoint returns nothing";
	if (!value_name_ok(name, len))
		return "names no value: a name has up to 31 letters, digits and '_', no digit "
		       "first";
	memcpy(value.name, name, len);
	if (value_name_taken(value.name))
		return "has a name that the events of traces use themselves";
	value.typed = type;
	if (type || value.text)
		value.type = type ? value_type_find(type, strlen(type)) : VALUE_STR;
	else if (value.position == SPEC_CALLER)
		value.type = VALUE_CODE;
	if (value.type == VALUE_TYPES)
		return "has an unknown type";
	if (spec_in_kernel(spec) && value.type == VALUE_DATA)
		return "is not for the kernel: names of data are those of a program";
	if ((value.position == SPEC_CALLER) != (value.type == VALUE_CODE))
		return "has the wrong type: the caller, and nothing else, is of type code";
	if (value.text != (value.type == VALUE_STR))
		return value.text ? "is a string: @exit is of type str" :
				    "is no string: only what stands behind @exit is";
	for (size_t i = 0; i < spec->n_values; i++)
		if (!strcmp(spec->value[i].name, value.name))
			return "gives a name twice";
	if (spec->n_values == VALUE_MAX)
		return "is a value too many: a target has at most 12, the return value included";
	why = fits(spec, &value);
	if (why)
		return why;
	spec->value[spec->n_values++] = value;
	spec->timed |= !spec->time_given;
	return value_conflict(spec);
}

/* A number of one or two digits, which *at then is behind; -1: there is none. */
static int number(const char **at)
{
	size_t digits = strspn(*at, "0123456789");
	int n = 0;

	if (!digits || digits > 2 || (digits > 1 && **at == '0'))
		return -1;
	while (digits--)
		n = n * 10 + (*(*at)++ - '0');
	return n;
}

/* N, N+4, N@BYTES or caller, up to the end or a ':', which *at then is at. NULL, or why not. */
static const char *place(const char **at, struct spec_value *value)
{
	int position, offset = 0;
	char sign;

	if (!strncmp(*at, "caller", 6) && (!(*at)[6] || (*at)[6] == ':')) {
		*at += 6;
		value->position = SPEC_CALLER;
		return NULL;
	}
	position = number(at);
	sign = **at;
	if (!strncmp(*at, "@exit", 5)) {
		*at += 5;
		sign = '@';
		value->text = true;
	} else if (sign == '+' || sign == '@') {
		++*at;
		offset = number(at);
	}
	if (position <= 0 || (**at && **at != ':'))
		return "has no position: the first argument is 1";
	if (sign == '+' && offset != 4)
		return "is not half of a word: behind '+' stands 4, for its upper half";
	if (sign == '@' && (offset < 0 || offset % 4 || offset >= SPEC_MEMORY))
		return "has no place in memory: behind '@' stand bytes, a multiple of 4 up to 36";
	if (position > SPEC_ARGUMENTS)
		return "is too far: only the first 11 integer arguments can be recorded";
	if (sign == '@' && position > SPEC_REGISTERS)
		return "points to no memory that can be recorded: only the first 6 integer "
		       "arguments do";
	value->position = (uint8_t)position;
	value->offset = (uint8_t)offset;
	value->memory = sign == '@';
	return NULL;
}

const char *value_arg(struct spec *spec, const char *text)
{
	const char *colon = strchr(text, ':'), *at = colon ? colon + 1 : text + strlen(text), *why;
	struct spec_value value = { 0 };

	if (spec->arguments)
		return "and args=yes exclude each other";
	why = place(&at, &value);
	if (why)
		return why;
	return add(spec, text, (size_t)(colon - text), value, *at ? at + 1 : NULL);
}

uint8_t value_text_of(const struct spec *spec)
{
	for (size_t i = 0; i < spec->n_values; i++)
		if (spec->value[i].text)
			return spec->value[i].position;
	return spec->text_argument;
}

const char *value_result(struct spec *spec, const char *text)
{
	const struct spec_value value = { .position = 1, .memory = true, .result = true };
	const char *colon = strchr(text, ':');

	return add(spec, text, colon ? (size_t)(colon - text) : strlen(text), value,
		   colon ? colon + 1 : NULL);
}

const char *value_text_argument(struct spec *spec, const char *text)
{
	if (!value_followed(spec) || *text < '2' || *text > '6' || text[1])
		return "is not one of 2 to 6, behind a result";
	spec->text_argument = (uint8_t)(*text - '0');
	return NULL;
}

uint8_t value_followed(const struct spec *spec)
{
	for (size_t i = 0; i < spec->n_values; i++)
		if (spec->value[i].memory)
			return spec->value[i].result || spec->value[i].text ?
				       7 :
				       spec->value[i].position;
	return 0;
}

const char *value_args(struct spec *spec)
{
	if (spec->kind != SPEC_SYMBOL && spec->kind != SPEC_LITERAL)
		return "belongs to the name of a native function";
	for (size_t i = 0; i < spec->n_values; i++)
		if (spec->value[i].position)
			return "and arg= exclude each other";
	spec->arguments = true;
	spec->timed |= !spec->time_given;
	return value_conflict(spec);
}

const char *value_ret(struct spec *spec, const char *text)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	const struct spec_value returned = { 0 };

	if (!text || (!colon && value_type_find(text, strlen(text)) != VALUE_TYPES))
		return add(spec, "ret", 3, returned, text);
	return add(spec, text, colon ? (size_t)(colon - text) : strlen(text), returned,
		   colon ? colon + 1 : NULL);
}

const char *value_sum(struct spec *spec, const char *text)
{
	for (size_t i = 0; i < spec->n_values; i++) {
		struct spec_value *value = &spec->value[i];

		if (strcmp(value->name, text) != 0)
			continue;
		if (value->type == VALUE_PTR || value_is_named(value->type))
			return "sums a pointer";
		if (value->type == VALUE_STR)
			return "sums a string";
		if (value->sum)
			return "is given twice for one target";
		value->sum = true;
		return NULL;
	}
	return "names no value: the arg= or ret of that name must stand before it";
}
