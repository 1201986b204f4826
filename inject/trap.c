/* SPDX-License-Identifier: MIT */
#include "trap.h"

#include <signal.h>
#include "space.h"
#include "tree-task.h"

#define SIGNAL_US 20000

enum { STOPS_MOST = 16 };

static void mask_again(pid_t tid)
{
	uint64_t mask;

	if (pt_get_sigmask(tid, &mask) == 0 && task_blocks_all(mask))
		pt_set_sigmask(tid, mask | 1ull << (SIGTRAP - 1));
}

bool trap_to_stub(const struct space *space, const struct thread *thread)
{
	struct arch_regs regs;
	uint64_t stub;

	if (pt_get_regs(thread->tid, &regs) < 0)
		return false;
	stub = space_trap_stub(space, arch->pc(&regs) - arch->trap_advance);
	if (!stub)
		return false;
	arch->set_pc(&regs, stub);
	pt_set_regs(thread->tid, &regs);
	mask_again(thread->tid);
	return true;
}

bool trap_pass_fault(const struct space *space, const struct thread *thread)
{
	const struct region *region;
	struct arch_regs regs;
	uint64_t common;
	size_t to;

	if (pt_get_regs(thread->tid, &regs) < 0)
		return false;
	region = space_region_at(space, arch->pc(&regs));
	if (!region)
		return false;
	common = region->addr + region->journal->common_off;
	to = arch->after_fault(arch->pc(&regs) - common);
	if (!to)
		return false;
	arch->set_pc(&regs, common + to);
	return pt_set_regs(thread->tid, &regs) == 0;
}

/* Continues the thread until its next stop, which comes before the program itself runs on. */
static bool next_stop(struct thread *t)
{
	struct stop stop;

	t->state = THREAD_RUNNING;
	if (pt_cont(t->tid, 0) < 0 || !pt_wait(t->tid, &stop, SIGNAL_US))
		return false;
	t->stop = stop;
	t->state = THREAD_STOPPED;
	return stop.kind != STOP_GONE;
}

static bool at_trap(const struct thread *t)
{
	return t->stop.kind == STOP_SIGNAL && t->stop.sig == SIGTRAP;
}

/* From a requested stop, or job control's, to the signal that is pending behind it. */
static bool fetch(struct thread *t)
{
	for (int i = 0; i < STOPS_MOST && !at_trap(t); i++)
		if (!next_stop(t))
			return false;
	return at_trap(t);
}

/*
 * Runs on without the signal, and to a stop of the former kind: the requested one, or job control's
 * where that has stopped the process.
 */
static bool stop_again(struct thread *t)
{
	return pt_interrupt(t->tid) == 0 && next_stop(t);
}

bool trap_take_back(const struct space *space, struct thread *t, struct arch_regs *regs)
{
	uint64_t addr = arch->pc(regs) - arch->trap_advance;
	bool waits = t->stop.kind == STOP_TRAP || t->stop.kind == STOP_GROUP;

	if (!space_trap_stub(space, addr))
		return true;
	waits = waits && task_signal_waits(t->tid, SIGTRAP);
	if (!waits && !at_trap(t))
		return true; /* it came here by another way */
	if (!fetch(t) || pt_get_regs(t->tid, regs) < 0)
		return false;
	arch->set_pc(regs, addr);
	if (pt_set_regs(t->tid, regs) < 0)
		return false;
	mask_again(t->tid);
	return stop_again(t);
}
