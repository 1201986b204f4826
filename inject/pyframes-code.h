/* SPDX-License-Identifier: MIT */
#ifndef SB_PYFRAMES_CODE_H
#define SB_PYFRAMES_CODE_H

#include <stdint.h>
#include "page-abi.h"

/*
 * Code for targets, one function: copies the Python frames of the thread with this thread pointer
 * to `area`, and their number of bytes to *to (pyframes.h). It refers to nothing outside of itself,
 * and keeps its frame pointer. Returns the sum that a stack's check has of them.
 */
uint64_t pyframes_stub(const struct sb_page_python *py, struct sb_page_stack *to, char *area,
		       uint64_t thread) __attribute__((section("sb_frames"), used, noinline));

/* Its end; it begins where the function does. */
extern const char __stop_sb_frames[];

#endif
