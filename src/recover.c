/* SPDX-License-Identifier: MIT */
#include "recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "maps.h"
#include "processes.h"
#include "../inject/clock.h"
#include "../inject/region.h"
#include "../inject/room.h"
#include "../inject/trap.h"
#include "../inject/tree-task.h"

enum { EVICT_TRIES = 10000, EVICT_SAY = 1000, SETTLE_TRIES = 200 };

/*
 * Children that fork off while we work: they carry the hooks too, and the loop in
 * recover_processes() comes to them.
 */
static void on_forked(void *ctx, struct proc *child, struct proc *parent, bool shares)
{
	struct sb_err err = { 0 };

	(void)ctx;
	if (shares)
		space_get(parent->space);
	else if (space_load(child->pid, &child->space, &err) < 0)
		child->space = NULL;
	child->session = child;
}

static void on_execed(void *ctx, struct proc *proc)
{
	(void)ctx;
	space_put(proc->space);
	proc->space = NULL; /* a new image has no hooks */
}

static void on_ended(void *ctx, struct proc *proc, int status)
{
	(void)ctx;
	(void)status;
	space_put(proc->space);
	proc->space = NULL;
}

static void on_thread_new(void *ctx, struct thread *thread)
{
	(void)ctx;
	(void)thread;
}

static bool on_trapped(void *ctx, struct thread *thread)
{
	struct space *space = thread->proc->space;

	(void)ctx;
	return space && trap_to_stub(space, thread);
}

static const struct tree_ops recover_ops = {
	.forked = on_forked,
	.execed = on_execed,
	.ended = on_ended,
	.thread_new = on_thread_new,
	.trapped = on_trapped,
};

static struct space *shared(const struct tree *tree, const struct proc *proc)
{
	for (struct proc *p = tree->procs; p; p = p->next)
		if (p != proc && p->space && task_shares_memory(p->pid, proc->pid, false))
			return space_get(p->space);
	return NULL;
}

static int take(struct tree *tree, pid_t pid, struct sb_err *err)
{
	struct proc *proc;
	int ret = tree_add(tree, pid, 0, &proc, err);

	if (ret < 0)
		return ret;
	proc->session = proc;
	proc->space = shared(tree, proc);
	return proc->space ? 0 : space_load(pid, &proc->space, err);
}

/*
 * The page says that nothing is to be counted or delayed any more: threads in a spin come out
 * now instead of when the lease ends, doorbells are answered by the lease.
 */
static void quiet_page(struct space *space)
{
	struct sb_page_header h;
	uint64_t past = arch->clock_read() - 1;
	uint32_t generation;

	if (!space->page_addr ||
	    memory_peek(&space->mem, space->page_addr, &h, sizeof(h)) != sizeof(h) ||
	    h.magic != SB_PAGE_MAGIC)
		return;
	generation = h.generation + 1;
	memory_write(&space->mem, space->page_addr + offsetof(struct sb_page_header, lease_until),
		     &past, sizeof(past), NULL);
	memory_write(&space->mem, space->page_addr + offsetof(struct sb_page_header, generation),
		     &generation, sizeof(generation), NULL);
}

static bool calls_under_way(const struct tree *tree, const struct space *space)
{
	struct arch_regs regs;

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next)
			if (t->state == THREAD_STOPPED && pt_get_regs(t->tid, &regs) == 0 &&
			    remote_under_way(&space->mem, &space->gadgets, &regs))
				return true;
	return false;
}

/*
 * A tracer that died a moment ago may have left a thread at the edge of a borrowed call, whose
 * effect is still to come: it is let through first, and then looked at anew.
 */
static void settle_calls(struct tree *tree, pid_t pid)
{
	struct proc *proc = tree_proc(tree, pid);
	struct space *space = proc ? proc->space : NULL, *anew;
	bool seen = false, now = true;

	if (!space)
		return;
	space_get(space);
	for (int i = 0; i < SETTLE_TRIES && now && tree_stop(tree, space, NULL) == 0; i++) {
		now = calls_under_way(tree, space);
		seen |= now;
		tree_resume(tree, space);
		if (now)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	proc = tree_proc(tree, pid);
	/* one reference is ours, one the process's: nobody shares it */
	if (seen && proc && proc->space == space && space->refs == 2 &&
	    space_load(pid, &anew, NULL) == 0) {
		space_put(space);
		proc->space = anew;
	}
	space_put(space);
}

/* An agent in an interpreter must be asked to go, and that may take it a while. */
static void evict(struct tree *tree, struct space *space, pid_t pid)
{
	struct room *room = room_load(space, tree, pid);

	for (int i = 0; room && i < EVICT_TRIES && tree_proc(tree, pid); i++) {
		if (room_evict(room, tree, clock_ns()))
			break;
		if (i == EVICT_SAY)
			log_note("process %d: waiting for its interpreter: %s", pid,
				 room->waits_for ? room->waits_for : "it is busy");
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		tree_dispatch(tree);
	}
	if (room && !room_is_quiet(room)) {
		space->agent_stays = true;
		log_warn("process %d: its interpreter did not come to let the agent go; try again "
			 "later",
			 pid);
	}
	room_free(room);
}

static int restore(struct tree *tree, struct proc *proc, struct sb_err *err)
{
	struct space_restored done = { 0 };
	struct space *space = proc->space;
	int ret = 0;

	if (!space || !space_holds(space))
		return 0;
	space_get(space);
	quiet_page(space);
	evict(tree, space, proc->pid);
	ret = space_restore(space, tree, true, &done, err);
	if (done.changed_by_others)
		log_warn("process %d: %zu places in its code were changed by someone else since "
			 "and were left alone",
			 space->mem.pid, done.changed_by_others);
	if (done.left_mapped)
		log_warn("process %d: its code is restored; a signal handler still returns into a "
			 "hook, so one mapping stays",
			 space->mem.pid);
	space_put(space);
	return ret;
}

static void let_go(struct tree *tree, struct proc *proc)
{
	tree_release(tree, proc);
	on_ended(NULL, proc, 0);
	tree_forget(tree, proc);
}

/* True where there was anything to restore. named: it is no child that was met on the way; that one
 * of those has ended meanwhile is no failure. */
static bool recover_one(struct tree *tree, pid_t pid, bool named, struct sb_err *err)
{
	struct sb_err why = { 0 };
	struct proc *proc;
	bool held;

	settle_calls(tree, pid);
	proc = tree_proc(tree, pid);
	if (!proc)
		return false;
	held = proc->space && space_holds(proc->space);
	restore(tree, proc, &why);
	if (why.code && !err->code && (named || why.code != SB_ENOPROC))
		*err = why;
	proc = tree_proc(tree, pid);
	if (proc)
		let_go(tree, proc);
	return held;
}

int recover_processes(const pid_t *pids, size_t n, size_t named, size_t *restored,
		      struct sb_err *err)
{
	struct sb_err first = { 0 };
	struct tree *tree = calloc(1, sizeof(*tree));
	bool more;

	if (!tree)
		abort();
	*restored = 0;
	tree_init(tree, &recover_ops, NULL);
	for (size_t i = 0; i < n; i++)
		if (!tree_proc(tree, pids[i])) {
			struct sb_err why = { 0 };

			if (take(tree, pids[i], &why) < 0 && !first.code &&
			    (i < named || why.code != SB_ENOPROC))
				first = why;
		}
	do {
		if (tree->procs) {
			pid_t pid = tree->procs->pid;

			*restored += recover_one(tree, pid, processes_listed(pids, named, pid),
						 &first);
		}
		more = tree_dispatch(tree);
	} while (more || tree->procs);
	tree_free(tree);
	free(tree);
	if (!first.code)
		return 0;
	*err = first;
	return -(int)first.code;
}
