/* SPDX-License-Identifier: MIT */
#ifndef SB_TRAP_H
#define SB_TRAP_H

#include "tree.h"

/*
 * Threads that have run an int3 of sbinject's: their SIGTRAP must never reach the target, since it
 * would end it.
 *
 * The kernel forces the trap's signal: where SIGTRAP was blocked it is unblocked. A mask that holds
 * every other signal is the one that libc uses around fork and thread creation; it is restored. A
 * process that blocks SIGTRAP in any other way is refused: task_trap_unfit().
 */

/*
 * The thread is about to receive a SIGTRAP. True if it was sbinject's: the thread continues in the
 * stub.
 */
bool trap_to_stub(const struct space *space, const struct thread *thread);

/*
 * The thread is about to receive the signal of a fault. True if that was in code of sbinject's that
 * may fault: what it has read is not what its owner keeps there. The thread continues behind it.
 * (Where the program ignores or blocks the signal, the kernel has set its action to the default.)
 */
bool trap_pass_fault(const struct space *space, const struct thread *thread);

/*
 * The text is restored, the thread stopped: where it has run an int3 that was there before, it is
 * moved back, and will run the instruction itself. Its SIGTRAP may still be pending: a requested
 * stop comes first. Then the thread runs until its signal, without running any instruction of the
 * program, and is stopped again. False: that failed; the thread runs or has ended, or it must be
 * examined again.
 */
bool trap_take_back(const struct space *space, struct thread *thread, struct arch_regs *regs);

#endif
