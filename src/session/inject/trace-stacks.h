/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_TRACE_STACKS_H
#define SB_SESSION_TRACE_STACKS_H

#include "inject/page-trace.h"
#include "src/session/trace-pipe.h"

/*
 * What the command line needs to name the callers of recorded calls: the stacks as they were
 * copied, and the maps of the processes. For trace.c. Not thread-safe. Zeros are an empty list.
 */
struct trace_maps {
	struct trace_maps_of *of;
	size_t n;
	uint64_t changes; /* messages so far */
};

/*
 * Maps and stacks are in one stream, in which a stack is of the maps before it: a process may run
 * another program soon.
 *
 * Reads the maps of a process, and adds a message where they are other ones than before. Not again
 * until a while has passed, unless `now`: it is known that they have changed.
 */
void trace_maps_look(struct trace_maps *all, pid_t pid, bool now, struct trace_bytes *to);
/* Only where that was some time ago: for what need not be noticed at once. */
void trace_maps_look_rarely(struct trace_maps *all, pid_t pid, struct trace_bytes *to);
/* Which message the last maps of the process are, from 1; 0: there are none. Is there code at that
 * address by them? */
uint64_t trace_maps_change(const struct trace_maps *all, pid_t pid);
bool trace_maps_have(const struct trace_maps *all, pid_t pid, uint64_t address);
void trace_maps_forget(struct trace_maps *all, pid_t pid, struct trace_bytes *to);
void trace_maps_free(struct trace_maps *all);

/* The stack of the next span. */
void trace_put_stack(struct trace_bytes *to, pid_t pid, const struct sb_page_stack *stack);

#endif
