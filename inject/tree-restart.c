/* SPDX-License-Identifier: MIT */
/*
 * Restarts the few system calls that return EINTR at any stop, so that the process does not notice
 * a stop of sbinject. Notes where a stop during a remote call overwrote the kernel's restart block.
 */
#include "tree-task.h"
#include "inject/arch/arch.h"

void task_unnoticed(pid_t tid)
{
	struct arch_regs regs;

	if (pt_get_regs(tid, &regs) < 0 || !arch->interrupted_for_good(&regs))
		return;
	if (task_signal_due(tid))
		return;
	arch->restart_syscall(&regs);
	pt_set_regs(tid, &regs);
}

void task_note_restart(struct thread *thread)
{
	struct arch_regs regs;

	if (pt_get_regs(thread->tid, &regs) == 0 && arch->waits_with_block(&regs))
		thread->restart_lost = true;
}

void task_signal_unnoticed(pid_t tid, int sig)
{
	struct arch_regs regs;

	if (pt_get_regs(tid, &regs) < 0 || !arch->interrupted_for_good(&regs))
		return;
	if (task_ignores(tid, sig))
		task_unnoticed(tid);
}
