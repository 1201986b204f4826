/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_EVIDENCE_CALL_BPF_H
#define SB_EVIDENCE_CALL_BPF_H

/* The system call that a thread is in, from the registers that the kernel saved at its entry. Only
 * for programs that run in the kernel. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct task_struct;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs;
struct pt_regs___x86 {
	unsigned long orig_ax, di, r10;
	unsigned long ip, sp, bp, bx, r12, r13, r14, r15;
};
struct pt_regs___arm64 {
	unsigned long regs[31];
	int syscallno;
	unsigned long orig_x0;
};
#pragma clang attribute pop

struct call {
	long number; /* negative: an exception */
	__u64 arg, fourth;
};

static __always_inline struct call call_of(struct task_struct *task)
{
	const void *regs = (const void *)bpf_task_pt_regs(task);
	const struct pt_regs___x86 *x86 = regs;
	const struct pt_regs___arm64 *arm = regs;
	struct call call = { .number = -1 };

	if (bpf_core_field_exists(x86->orig_ax)) {
		call.number = (long)x86->orig_ax;
		call.arg = x86->di;
		call.fourth = x86->r10;
	} else if (bpf_core_field_exists(arm->syscallno)) {
		call.number = arm->syscallno;
		call.arg = arm->orig_x0;
		call.fourth = arm->regs[3];
	}
	return call;
}

#endif
