/* SPDX-License-Identifier: MIT */
/* Whether the stub has to keep the arithmetic flags. Saving them costs about 2 ns per hit. */
#include "x86.h"

enum { WALK_INSNS = 16 };

/* Leaving the function is a tail call, and flags are no arguments. */
static bool leaves(const struct plan_request *req, const struct x86_decoded *insn)
{
	if (insn->kind == X86_JMP_IND)
		return insn->form.rip; /* through the GOT; a jump table would need a register */
	return req->func_end && (insn->target < req->func || insn->target >= req->func_end);
}

/* One step: 1 live, 0 dead, -1 continue behind the instruction. */
static int step(const struct plan_request *req, const struct x86_decoded *insn, unsigned int *open)
{
	if (insn->flags_in & *open)
		return 1;
	*open &= ~insn->flags_out;
	if (!*open)
		return 0;
	switch (insn->kind) {
	case X86_RET:
	case X86_TRAP:
	case X86_CALL:
	case X86_CALL_IND:
		return 0;
	case X86_JMP:
	case X86_JMP_IND:
		return !leaves(req, insn);
	case X86_JCC:
	case X86_LOOP:
		/*
		 * In the middle of a function the other branch may read flags that are still
		 * undecided here.
		 */
		return req->entry ? -1 : 1;
	case X86_FIXED:
		return 1;
	default:
		return -1;
	}
}

bool x86_flags_live(const struct plan_request *req, uint64_t pc)
{
	unsigned int open = X86_ARITH;

	for (int i = 0; i < WALK_INSNS; i++) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, pc, &avail);
		int live;

		if (!p || x86_decode(p, avail, pc, &insn) != PLAN_OK)
			return true;
		live = step(req, &insn, &open);
		if (live >= 0)
			return live;
		pc += insn.form.len;
	}
	return true;
}
