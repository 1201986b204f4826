/* SPDX-License-Identifier: MIT */
#ifndef SB_PYTHON_STACK_H
#define SB_PYTHON_STACK_H

#include <stddef.h>
#include "inject/page-abi.h"
#include "trace/event.h"

/*
 * The Python frames of a recorded call, as its thread has copied them (struct sb_page_frame), in
 * groups: those that one call of the function that runs Python has, from the innermost one on. All
 * that comes in is data from a target.
 */
enum { PYTHON_STACK_TEXT = 1 << 15 };

struct python_stack {
	uint32_t n, next; /* frames; the first one that was not taken */
	const char *frame[TRACE_FRAMES_MAX];
	uint64_t at[TRACE_FRAMES_MAX]; /* in the stack frame of its group's call; 0: unknown */
	enum sb_page_frames_end end;
	char text[PYTHON_STACK_TEXT];
	size_t used;
};

/* Frames that are damaged end it, and so does the room for them: end is SB_FRAMES_ODD or _FULL. */
void python_stack_read(struct python_stack *s, const char *frames, size_t size, uint32_t end);

/* The place of the next group; 0: there is none, or its place is not known. */
uint64_t python_stack_at(const struct python_stack *s);

/* Why there are no more, or none; NULL: these are all. */
const char *python_stack_why(const struct python_stack *s);

#endif
