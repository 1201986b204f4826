/* SPDX-License-Identifier: MIT */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"
#include "src/spec/ioctls.h"

enum { DEVICE, CMD, DETAIL, STATUS, RESULT, DETAIL_NAME };

static const struct {
	const char *name;
	enum value_type type;
	int at; /* in the span; -1: a text */
} values_of[REQUEST_VALUES] = {
	[DEVICE] = { "device", VALUE_STR, -1 },
	[CMD] = { "cmd", VALUE_PTR, KERNEL_IOCTL_CMD },
	[DETAIL] = { "detail", VALUE_PTR, KERNEL_IOCTL_DETAIL },
	[STATUS] = { "status", VALUE_U32, KERNEL_IOCTL_STATUS },
	[RESULT] = { "result", VALUE_I64, KERNEL_IOCTL_RESULT },
	[DETAIL_NAME] = { "detail_name", VALUE_STR, -1 },
};

void requests_values(struct trace_values *values)
{
	values->n = REQUEST_VALUES;
	for (size_t i = 0; i < REQUEST_VALUES; i++) {
		snprintf(values->value[i].name, sizeof(values->value[i].name), "%s",
			 values_of[i].name);
		values->value[i].type = values_of[i].type;
	}
}

void requests_free(struct requests *r)
{
	for (size_t i = 0; i < r->n_texts; i++)
		free(r->text[i]);
	free(r->text);
	free(r->known);
	*r = (struct requests){ 0 };
}

/* The text's number; 0: there is none, or there are too many. */
static uint32_t text_of(struct requests *r, const char *text, struct trace_bytes *bytes)
{
	size_t i = 0;

	while (text && i < r->n_texts && strcmp(r->text[i], text) != 0)
		i++;
	if (!text || i == REQUEST_TEXTS_MOST)
		return 0;
	if (i == r->n_texts) {
		r->text = must_realloc(r->text, (i + 1) * sizeof(*r->text));
		r->text[r->n_texts++] = must_strdup(text);
		trace_put_kernel(bytes, (uint32_t)i + 1, text);
	}
	return (uint32_t)i + 1;
}

/* ---- the function ---- */

static const char *name_of(const struct request_name *q, char own[32])
{
	const char *name = ioctls_name(q->device, q->cmd, q->number);

	snprintf(own, 32, "ioctl 0x%x", q->cmd);
	return name ? name : own;
}

static bool same(const struct request_name *a, const struct request_name *b)
{
	return a->cmd == b->cmd && a->number == b->number &&
	       !strncmp(a->device, b->device, KERNEL_DEVICE);
}

/* One name is one function, whatever the device and the size in the request. */
static uint32_t declare(struct requests *r, const char *name, struct trace_bytes *bytes)
{
	uint32_t id = REQUESTS_FROM + (uint32_t)r->n;
	char own[32];

	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(name, name_of(&r->known[i], own)))
			return r->known[i].function;
	trace_put_function(bytes, &(struct trace_function){ id, TRACE_KERNEL, name, "ioctl" });
	return id;
}

static uint32_t function_of(struct requests *r, const struct request_name *q,
			    struct trace_bytes *bytes)
{
	struct request_name new = *q;
	char own[32];
	size_t i = 0;

	while (i < r->n && !same(&r->known[i], q))
		i++;
	if (i < r->n)
		return r->known[i].function;
	if (i == REQUESTS_MOST) {
		if (!r->others)
			trace_put_function(
				bytes, &(struct trace_function){ REQUESTS_FROM + REQUESTS_MOST,
								 TRACE_KERNEL, "ioctl", "ioctl" });
		r->others = true;
		return REQUESTS_FROM + REQUESTS_MOST;
	}
	new.function = declare(r, name_of(q, own), bytes);
	r->known = must_realloc(r->known, (r->n + 1) * sizeof(*r->known));
	r->known[r->n++] = new;
	return new.function;
}

/* What it asks for, by name; NULL: it has none. */
static const char *detail_name(const struct request_name *q, uint64_t detail)
{
	const char *name = ioctls_name(q->device, q->cmd, q->number);

	return name && detail != KERNEL_UNKNOWN ? ioctls_detail_name(name, (uint32_t)detail) : NULL;
}

static uint64_t value_of(struct requests *r, const struct request_name *q,
			 const struct kernel_span *span, size_t i, struct trace_bytes *bytes)
{
	uint32_t text;

	if (values_of[i].at >= 0)
		return span->value[values_of[i].at];
	text = text_of(r,
		       i == DEVICE ? q->device : detail_name(q, span->value[KERNEL_IOCTL_DETAIL]),
		       bytes);
	return text ? text : KERNEL_UNKNOWN;
}

uint32_t requests_take(struct requests *r, const struct kernel_span *span, struct trace_valued *to,
		       struct trace_bytes *bytes)
{
	struct request_name q = { .cmd = (uint32_t)span->value[KERNEL_IOCTL_CMD],
				  .number = (uint32_t)span->value[KERNEL_IOCTL_NUMBER] };

	memcpy(q.device, &span->value[KERNEL_IOCTL_DEVICE], sizeof(q.device));
	q.device[sizeof(q.device) - 1] = '\0';
	for (size_t i = 0; i < REQUEST_VALUES; i++) {
		uint64_t value = value_of(r, &q, span, i, bytes);
		bool known = i == RESULT || value != KERNEL_UNKNOWN;

		to->value[i] = known ? value : 0;
		to->unknown |= (uint32_t)!known << i;
	}
	return function_of(r, &q, bytes);
}
