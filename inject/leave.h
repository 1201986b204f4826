/* SPDX-License-Identifier: MIT */
#ifndef SB_LEAVE_H
#define SB_LEAVE_H

#include "space.h"

/*
 * Moves registers out of sbinject's code without running it: registers that stand anywhere in a
 * stub become what they would be if the function had never been hooked, at the instruction that the
 * hook replaced. The program behaves the same from either set of registers. So this is valid for
 * the registers of a stopped thread and for those that a signal handler will return to (frames.h),
 * whether that frame is live or not.
 *
 * The text must have been restored. Reads the target's memory, changes nothing but *regs.
 */
enum leave {
	LEAVE_OUTSIDE, /* the pc is not in sbinject's code; *regs is unchanged */
	LEAVE_MOVED,
	LEAVE_NOT, /* no equivalent registers in the original code */
};

/*
 * exact: LEAVE_NOT also where the stub is about to write its figures, which would be lost, or where
 * one of two counters has the hit. A delay that is cut short is recorded in the control page.
 */
enum leave leave_code(const struct space *space, struct arch_regs *regs, bool exact);

/* True where leave_code() would not return LEAVE_OUTSIDE. */
bool leave_is_ours(const struct space *space, uint64_t pc);

#endif
