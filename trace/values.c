/* SPDX-License-Identifier: MIT */
#include "values.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBER = VALUE_NAME_SIZE + VALUE_TEXT_SIZE + 16 };

static char *put_value(char *at, const struct trace_value *v)
{
	bool quoted = v->type == VALUE_PTR || (v->value > INT64_MAX && !value_signed(v->type));

	if (!v->known || v->type == VALUE_STR)
		return stpcpy(at, "null");
	at = stpcpy(at, quoted ? "\"" : "");
	value_text(v->type, v->value, at, VALUE_TEXT_SIZE);
	return stpcpy(at + strlen(at), quoted ? "\"" : "");
}

static void put_text(struct trace_out *out, const char *text)
{
	char *quoted = trace_quoted(text);

	trace_out_text(out, quoted);
	free(quoted);
}

static void put_stack(struct trace_out *out, const struct trace_stack *stack)
{
	char *end = stack->end ? trace_quoted(stack->end) : NULL;

	trace_out_text(out, ",\"" TRACE_STACK "\":[");
	for (uint32_t i = 0; i < stack->n; i++) {
		char *frame = trace_quoted(stack->frame[i]);

		trace_out_text(out, i ? "," : "");
		trace_out_text(out, frame);
		free(frame);
	}
	trace_out_text(out, "]");
	if (end) {
		trace_out_text(out, ",\"" TRACE_STACK_END "\":");
		trace_out_text(out, end);
	}
	free(end);
}

void trace_put_values_json(struct trace_out *out, const struct trace_span *span)
{
	for (uint32_t i = 0; i < span->n_values; i++) {
		char *at = stpcpy(trace_out_room(out, MEMBER), ",\"");

		at = stpcpy(stpcpy(at, span->value[i].name), "\":");
		if (span->value[i].known && span->value[i].type == VALUE_STR) {
			trace_out_took(out, at);
			put_text(out, span->value[i].text);
		} else {
			trace_out_took(out, put_value(at, &span->value[i]));
		}
	}
	if (span->kernel) {
		trace_out_text(out, ",\"" TRACE_KERNEL_NAME "\":");
		put_text(out, span->kernel);
	}
	if (span->stack)
		put_stack(out, span->stack);
}
