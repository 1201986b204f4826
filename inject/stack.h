/* SPDX-License-Identifier: MIT */
#ifndef SB_STACK_H
#define SB_STACK_H

#include "memory.h"
#include "inject/arch/arch.h"

/*
 * Stacks that a remote call may use. The frame that is laid under a thread's stack pointer takes up
 * to ARCH_FRAME_MAX bytes. There may be less space: above a guard page, or on a stack that the
 * program made itself (coroutines, goroutines, alternate signal stacks), under which other threads
 * keep their data.
 */

/*
 * Is the stack pointer on the stack that the thread was born with? Then everything below it, down
 * to *low, belongs to this thread alone. That is so for a leader on the process's own stack (*low
 * is 0: down to its guard), and where a thread's control block, in which its C library keeps the
 * bounds of its stack, shows it. False where it is unknown.
 */
bool stack_is_own(pid_t tid, const struct memory *mem, const struct arch_regs *regs, uint64_t *low);

/*
 * The lower end of the stack that holds sp, from the n words of the control block at `block`; 0
 * where they contain no such stack.
 */
uint64_t stack_low(const uint64_t *word, size_t n, uint64_t sp, uint64_t block);

/*
 * Where the control block of this thread, which is not the first one, has the bounds of its stack:
 * the offset of its lower end, behind which is the size. 0 where they are not found, and where the
 * C library is not glibc.
 */
uint16_t stack_bounds_at(const struct memory *mem, const struct arch_regs *regs);

/*
 * Writes only where the target itself could: never into a guard page, which /proc/PID/mem would
 * allow. False: nothing was written, or the old contents (was: len bytes) are back.
 */
bool stack_write(pid_t tid, const struct memory *mem, uint64_t at, const void *bytes,
		 const void *was, size_t len);

/*
 * Has any thread `room` bytes under its stack pointer for a remote call? Derived from /proc for
 * threads that sleep; a running thread counts as yes. No thread is stopped.
 */
bool stack_has_room(pid_t pid, size_t room);

#endif
