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
 * frame of a handler that runs, on an alternate stack, on the stack of a coroutine that a
 * handler switched away from, in a copy of a ucontext_t that a scheduler of the program keeps.
 *
 * Whether one is live cannot be told for certain. So what is found is not judged but changed
 * into something that means the same to the program (leave.h): then it does not matter.
 */
typedef void frames_fn(void *ctx, uint64_t at, const struct arch_regs *regs);

/*
 * On the stack of a stopped thread: `scan` bytes above sp, and above the stack pointer of each
 * frame that is found there, which may be on another stack.
 */
void frames_on_stack(const struct memory *mem, uint64_t sp, size_t scan, frames_fn *fn, void *ctx);

/* Bytes to look through per thread, given how many threads there are: bounds the time. */
size_t frames_scan_bytes(size_t threads);

/*
 * In all memory that the process can write and that is present, small mappings first, until
 * `budget` bytes have been read. The target runs; pause() is called now and then, and may let
 * others have the processor. Touches no page that is not there. False: the budget was too
 * small, or the kernel does not tell which pages are present.
 */
bool frames_everywhere(const struct memory *mem, uint64_t budget, frames_fn *fn, void *ctx,
		       void (*pause)(void *ctx));

#endif
