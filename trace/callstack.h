/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_CALLSTACK_H
#define SB_TRACE_CALLSTACK_H

#include "event.h"

/* Stacks of calls (struct trace_stack) that are put together or kept: one block of memory each. */

/* A copy, to be freed; NULL for NULL. */
struct trace_stack *callstack_copy(const struct trace_stack *stack);

/* A stack that is being read. Zeros are an empty one; what goes beyond the bounds is left out. */
struct callstack {
	struct trace_stack stack;
	char *frame[TRACE_FRAMES_MAX];
	char *end;
};

void callstack_add(struct callstack *c, char *frame); /* takes over the text; NULL is harmless */
void callstack_end(struct callstack *c, char *end);
/* As a span has it; NULL: it is empty. */
const struct trace_stack *callstack_get(struct callstack *c);
void callstack_clear(struct callstack *c);

#endif
