/* SPDX-License-Identifier: MIT */
#ifndef SB_FRAMES_H
#define SB_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "memory.h"
#include "arch/arch.h"

/*
 * Signal frames on a stopped thread's stack: a handler is running (or blocked) there, and will
 * return to the pc that the frame holds. Is it one that `wanted` cares about?
 *
 * Looks at `scan` bytes above sp at most. A word counts when it stands where a signal frame
 * keeps its pc and the rest of the frame bears that out (its restorer calls rt_sigreturn).
 */
typedef bool frames_wanted_fn(void *ctx, uint64_t pc);

bool frames_return_to(const struct memory *mem, uint64_t sp, size_t scan, frames_wanted_fn *wanted,
		      void *ctx);

/* Bytes to look through per thread, given how many threads there are: bounds the time. */
size_t frames_scan_bytes(size_t threads);

#endif
