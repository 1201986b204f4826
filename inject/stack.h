/* SPDX-License-Identifier: MIT */
#ifndef SB_STACK_H
#define SB_STACK_H

#include "memory.h"
#include "inject/arch/arch.h"

/*
 * Stacks that a borrowed call may use. The frame that is laid under a thread's stack pointer
 * takes up to ARCH_FRAME_MAX bytes, and that may be more than there is: above a guard page, or
 * on a stack that the program made itself (coroutines, goroutines, alternate signal stacks),
 * under which other threads keep their data.
 */

/*
 * Does the stack pointer lie on the stack that the thread was born with? Then everything below
 * it, down to *low, is nobody else's. That is so for a leader on the process's own stack (*low is
 * 0: down to its guard), and where a thread's control block, in which its C library keeps the
 * bounds of its stack, says so. False where it cannot be told.
 */
bool stack_is_own(pid_t tid, const struct memory *mem, const struct arch_regs *regs, uint64_t *low);

/* The lower end of the stack that holds sp, as the n words of the control block at `block` have it;
 * 0 where it is no stack of theirs. */
uint64_t stack_low(const uint64_t *word, size_t n, uint64_t sp, uint64_t block);

/*
 * Writes only where the target itself could: never into a guard page, which /proc/PID/mem
 * would allow. False: nothing was written that does not stand there again (was: len bytes).
 */
bool stack_write(pid_t tid, const struct memory *mem, uint64_t at, const void *bytes,
		 const void *was, size_t len);

/*
 * Could a borrowed call have its `room` bytes under some thread's stack pointer? From what /proc
 * tells of threads that sleep; one that runs counts as yes. Nobody is stopped.
 */
bool stack_has_room(pid_t pid, size_t room);

#endif
