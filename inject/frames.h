/* SPDX-License-Identifier: MIT */
#ifndef SB_FRAMES_H
#define SB_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "memory.h"
#include "inject/arch/arch.h"

/*
 * Registers that signal handlers will return to, wherever they lie in a target's memory: in the
 * frame of a handler that runs, on an alternate stack, on the stack of a coroutine that a handler
 * switched away from, in a copy of a ucontext_t that a scheduler of the program keeps.
 *
 * There is no certain test for whether such a frame is live. So every frame found is changed into
 * an equivalent one (leave.h): the program behaves the same whether the frame is live or not. The
 * exception is what a later frame lies over: a change of such remains would change that one
 * (context_covered() of arch.h).
 */
typedef void frames_fn(void *ctx, uint64_t at, const struct arch_regs *regs);

/*
 * Searches the stack of a stopped thread: `scan` bytes above sp, and above the stack pointer of
 * each frame that is found there, which may be on another stack.
 */
void frames_on_stack(const struct memory *mem, uint64_t sp, size_t scan, frames_fn *fn, void *ctx);

/* Bytes to search per thread, given the number of threads: bounds the time. */
size_t frames_scan_bytes(size_t threads);

/*
 * Searches all present memory that the process can write, small mappings first, until `budget`
 * bytes have been read. The target runs. pause() is called at intervals, and may yield the
 * processor. Does not touch pages that are not present. False: the budget was too small, or the
 * kernel does not report which pages are present.
 */
bool frames_everywhere(const struct memory *mem, uint64_t budget, frames_fn *fn, void *ctx,
		       void (*pause)(void *ctx));

#endif
