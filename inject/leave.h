/* SPDX-License-Identifier: MIT */
#ifndef SB_LEAVE_H
#define SB_LEAVE_H

#include "space.h"

/*
 * Out of our code without running it: registers that stand anywhere in a stub become what they
 * would be had the function never been hooked, at the instruction that the hook replaced. It
 * makes no difference to the program whether it goes on from the one or from the other, so this
 * holds for the registers of a stopped thread and for those that a signal handler will return
 * to (frames.h), be that frame live or long dead.
 *
 * The text must have been restored. Reads the target's memory, changes nothing but *regs.
 */
enum leave {
	LEAVE_OUTSIDE, /* the pc is none of ours; *regs is unchanged */
	LEAVE_MOVED,
	LEAVE_NOT, /* between two instructions of which no pair stands in the original */
};

/* exact: LEAVE_NOT also where the stub is about to write down figures, which would be lost, or
 * where one of two counters has the hit. A delay that is cut short is noted in the control page. */
enum leave leave_code(const struct space *space, struct arch_regs *regs, bool exact);

/* True if leave_code() would not say LEAVE_OUTSIDE. */
bool leave_is_ours(const struct space *space, uint64_t pc);

#endif
