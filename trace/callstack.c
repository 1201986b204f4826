/* SPDX-License-Identifier: MIT */
#include "callstack.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

struct trace_stack *callstack_copy(const struct trace_stack *stack)
{
	size_t size = sizeof(*stack), n = stack ? stack->n : 0;
	struct trace_stack *copy;
	const char **frame;
	char *text;

	if (!stack)
		return NULL;
	for (size_t i = 0; i < n; i++)
		size += sizeof(*frame) + strlen(stack->frame[i]) + 1;
	size += stack->end ? strlen(stack->end) + 1 : 0;
	copy = must_calloc(1, size);
	frame = (const char **)(copy + 1);
	text = (char *)(frame + n);
	copy->frame = frame;
	copy->n = stack->n;
	for (size_t i = 0; i < n; i++) {
		frame[i] = text;
		text = stpcpy(text, stack->frame[i]) + 1;
	}
	if (stack->end)
		stpcpy(text, stack->end);
	copy->end = stack->end ? text : NULL;
	return copy;
}

void callstack_add(struct callstack *c, char *frame)
{
	if (frame && c->stack.n < TRACE_FRAMES_MAX)
		c->frame[c->stack.n++] = frame;
	else
		free(frame);
}

void callstack_end(struct callstack *c, char *end)
{
	free(c->end);
	c->end = end;
}

const struct trace_stack *callstack_get(struct callstack *c)
{
	c->stack.frame = (const char *const *)c->frame;
	c->stack.end = c->end;
	return c->stack.n || c->end ? &c->stack : NULL;
}

void callstack_clear(struct callstack *c)
{
	for (uint32_t i = 0; i < c->stack.n; i++)
		free(c->frame[i]);
	free(c->end);
	c->stack = (struct trace_stack){ 0 };
	c->end = NULL;
}
