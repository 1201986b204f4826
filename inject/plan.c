/* SPDX-License-Identifier: MIT */
#include "plan.h"

static const char *const refusal_text[PLAN_REFUSAL_COUNT] = {
	[PLAN_OK] = "can be hooked",
	[PLAN_TOO_SHORT] =
		"the function is shorter than the 5-byte jump and has no padding around it "
		"(try --mechanism int3)",
	[PLAN_LANDING] = "a branch lands inside the bytes that the jump would replace "
			 "(try --mechanism int3)",
	[PLAN_LOOPS_TO_ENTRY] =
		"the function loops back to its own entry by a branch that cannot be moved, "
		"each round would count as a call",
	[PLAN_CROSSES_PAGE] = "the first instructions cross a page boundary, where a write can be "
			      "cut in half (try --mechanism int3)",
	[PLAN_UNDECODABLE] = "its first instructions cannot be decoded",
	[PLAN_UNMOVABLE] = "its first instructions cannot run at another address",
	[PLAN_OUT_OF_REACH] = "an operand of its first instructions is farther than 2 GB from "
			      "where they would run",
	[PLAN_MID_INSTRUCTION] = "the address is in the middle of an instruction",
	[PLAN_GO_NOSPLIT] =
		"a Go function without a stack check, of the runtime, in assembly or of a Go "
		"before 1.18: what its caller keeps in registers, and how much stack is left, is "
		"not known",
	[PLAN_GO_PREEMPT] =
		"a Go function without a stack check, whose first instruction is too short: a "
		"preempted goroutine may wait behind it, to go on in the middle of the hook",
	[PLAN_FILE_CHANGED] = "the module's file was changed while it was read",
	[PLAN_TEXTREL] = "the module's text has relocations (DT_TEXTREL)",
	[PLAN_TEXT_CHANGED] =
		"the code in memory differs from the file: another tool has patched it",
	[PLAN_BREAKPOINT] = "another tool has put a breakpoint there: a kernel uprobe (perf, "
			    "bpftrace, a profiler), or a debugger's",
	[PLAN_INLINE_LOOPS] = "the inlined code loops back to where it begins, each round would "
			      "count as a call; the line of the call, MODULE:@FILE:LINE, may do",
	[PLAN_INLINE_SEVERAL] =
		"the inlined code begins at more than one place (an unrolled loop, as "
		"it looks), its calls cannot be counted at one; the line of the call, "
		"MODULE:@FILE:LINE, may do",
	[PLAN_NO_ROOM] = "no free address range within 2 GB for the hook's code",
	[PLAN_OVERLAP] = "another target's hook needs the same bytes (leave one of the two out, or "
			 "try --mechanism int3)",
	[PLAN_EXIT_INSIDE] = "exits are those of a function, and this address is inside of one",
	[PLAN_EXIT_NONE] = "the function has no exit: it never returns",
	[PLAN_EXIT_ROOM] = "one of its exits has no space for a 5-byte jump (try --mechanism int3)",
	[PLAN_EXIT_INDIRECT] = "a jump to a computed address may leave the function or not",
	[PLAN_EXIT_CONDITIONAL] = "it leaves by a loop or jrcxz instruction",
	[PLAN_EXIT_ELSEWHERE] = "it jumps into code that is not known to be its own",
	[PLAN_EXIT_SHORT] = "it is too short for a hook at its entry and one at its exit",
	[PLAN_EXIT_GO] = "Go may move its stack while it runs",
	[PLAN_EXIT_RUNS_ON] = "its end is not known, or it continues behind it",
	[PLAN_EXIT_UNDECODABLE] = "one of its instructions cannot be decoded",
};

const char *plan_refusal_text(enum plan_refusal why)
{
	if ((unsigned int)why >= PLAN_REFUSAL_COUNT || !refusal_text[why])
		return "unknown reason";
	return refusal_text[why];
}
