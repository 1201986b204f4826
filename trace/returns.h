/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_RETURNS_H
#define SB_TRACE_RETURNS_H

#include <stddef.h>
#include <stdint.h>
#include "event.h"

/*
 * What calls returned, of functions whose value "result" is a code, 0 for success: the other codes
 * are counted by function. The list is bounded; what has no room in it is counted in `others`.
 */
#define RETURNS_VALUE "result"

enum { RETURNS_MAX = 256 };

struct returns {
	uint64_t known;	 /* calls whose code is known */
	uint64_t failed; /* ... and is not 0 */
	uint64_t others; /* ... of which list has no row */
	struct returns_row {
		uint32_t function;
		int64_t code;
		uint64_t calls;
	} row[RETURNS_MAX];
	size_t n;
};

void returns_add(struct returns *r, const struct trace_span *span);

#endif
