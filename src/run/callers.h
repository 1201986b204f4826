/* SPDX-License-Identifier: MIT */
#ifndef SB_CALLERS_H
#define SB_CALLERS_H

#include "src/session/trace-pipe.h"

/*
 * Names the callers of recorded calls, from the stacks that their threads copied: unwinds by the
 * tables of the mapped files (elf/unwind.h), or by frame pointers where a file has no table and the
 * function keeps one, outside of the target and some time later. Files are opened with the rights
 * of the user when their maps come, since their process may end at any time.
 *
 * All that comes in is data from a target: a stack that lies names wrong callers.
 */
struct callers;

struct callers *callers_open(void);
void callers_close(struct callers *c); /* NULL is harmless */

/* The payloads of TRACE_MESSAGE_MAPS and TRACE_MESSAGE_STACK. Wrong ones are ignored. */
void callers_maps(struct callers *c, const char *payload, size_t size);
void callers_stack(struct callers *c, const char *payload, size_t size);

/* The name of the function that begins at this address, demangled, to be freed; NULL: none is
 * known to begin there. */
char *callers_function(struct callers *c, int32_t pid, uint64_t address);

/* The place that a call returns to, "module:function+0x1f" as in a stack. Valid until the next
 * call. */
const char *callers_place(struct callers *c, int32_t pid, uint64_t address);

/* The data object of a file at this address, "module:name+0x10"; NULL: none is known. Valid until
 * the next call. */
const char *callers_object(struct callers *c, int32_t pid, uint64_t address);

/* The callers by the last stack, once; NULL: there is none. Valid until the next call. */
const struct trace_stack *callers_take(struct callers *c);

#endif
