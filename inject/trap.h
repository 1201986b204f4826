/* SPDX-License-Identifier: MIT */
#ifndef SB_TRAP_H
#define SB_TRAP_H

#include "tree.h"

/*
 * Threads that have run an int3 of ours: their SIGTRAP is ours too, and must never reach the
 * target, whose end it would be.
 *
 * The kernel treats the trap as a signal that cannot wait: where SIGTRAP was blocked it is
 * unblocked. A mask that holds every other signal is the one that libc uses around fork and thread
 * creation; it is put back. Whoever blocks SIGTRAP otherwise is refused: task_trap_unfit().
 */

/* The thread is about to get a SIGTRAP. True if it was ours: it goes on in the stub now. */
bool trap_to_stub(const struct space *space, const struct thread *thread);

/*
 * The text is restored, the thread stopped: where it has run an int3 that was there before, it is
 * moved back, and will run the instruction itself. Its SIGTRAP may still be to come: a stop that
 * was asked for comes first. Then the thread is let go to its signal, without running anything of
 * the program, and is stopped again. False: that did not go well, it runs or has ended, or it is to
 * be looked at again.
 */
bool trap_take_back(const struct space *space, struct thread *thread, struct arch_regs *regs);

#endif
