/* SPDX-License-Identifier: MIT */
/*
 * The session's side of the process tree: the choice of processes, and the response to a fork, an
 * exec, an end or a doorbell.
 */
#include <stdlib.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "priv.h"
#include "python.h"
#include "inject/trap.h"
#include "inject/tree-task.h"
#include "src/base/log.h"

/* The record of the nearest ancestor under trace: pid= is inherited from it. */
static struct record *ancestor_record(struct inject_session *s, pid_t parent)
{
	struct proc *p = tree_proc(&s->tree, parent);

	return p ? p->session : NULL;
}

int session_take(struct inject_session *s, pid_t pid, pid_t parent, struct sb_err *err)
{
	struct proc *proc;
	int ret = tree_add(&s->tree, pid, parent, &proc, err);

	if (ret < 0)
		return ret;
	if (session_share(s, proc))
		return 0;
	proc->space = space_new(pid, err);
	if (!proc->space) {
		tree_release(&s->tree, proc);
		tree_forget(&s->tree, proc);
		return -(int)err->code;
	}
	proc->session = record_new(s, proc, ancestor_record(s, parent));
	if (!s->cfg->children) /* else the descendants are taken in any case */
		session_hold_sharers(s, proc->space);
	return 0;
}

static bool wanted(const struct inject_session *s, pid_t pid)
{
	return s->cfg->children || pid == s->cfg->launched ||
	       processes_listed(s->cfg->pids, s->cfg->n_pids, pid);
}

/* A child born in the middle of a change: it needs the hooks that its parent has got meanwhile. */
static void complete(struct inject_session *s, struct proc *child)
{
	struct sb_err err = { 0 };
	struct record *rec = child->session;

	log_debug("process %d, a child, was born while its parent was changed", child->pid);
	/* The process may be gone when this returns; its record stays. */
	if (session_hook(s, child, false, &err) < 0 && err.code != SB_ENOPROC)
		session_bar(s, rec, &err);
	window_apply(s, rec);
}

static bool looks(const struct record *rec)
{
	return rec && rec->looking;
}

static void on_forked(void *ctx, struct proc *child, struct proc *parent, bool shares_memory)
{
	struct inject_session *s = ctx;
	struct sb_err err = { 0 };

	if (shares_memory) {
		space_get(parent->space);
		child->session = parent->session; /* counts as its parent until it execs */
		return;
	}
	if (!parent->space)
		return;
	child->space = space_fork(parent->space, child->pid, &err);
	if (!child->space) {
		/* Its parent is no longer dumpable, and we are not root. */
		session_warn(s,
			     "process %d, a child, is not followed and keeps its hooks, which do "
			     "nothing once sbinject has ended: %s",
			     child->pid, err.what);
		return;
	}
	if (!wanted(s, child->pid)) {
		if (!unrecorded_forked(s, child, parent))
			session_let_go(s, child);
		return;
	}
	child->session = record_new(s, child, parent->session);
	python_forked(child->session, parent->session);
	window_apply(s, child->session);
	if (!s->detached && (child->space->lacks || looks(parent->session)))
		complete(s, child);
}

static void leave_space(struct inject_session *s, struct proc *proc)
{
	struct record *rec = proc->session;
	struct space *space = proc->space;

	proc->session = NULL;
	proc->space = NULL;
	/* A vfork child leaves the record to its parent. */
	if (rec && rec->pid == proc->pid && !rec->ended)
		record_end(s, rec);
	space_put(space);
}

static void on_execed(void *ctx, struct proc *proc)
{
	struct inject_session *s = ctx;
	struct record *parent = proc->session, *rec;
	struct sb_err err = { 0 };

	/* The scope passes from the old image to the new one. */
	leave_space(s, proc);
	for (struct thread *t = proc->threads; t; t = t->next)
		t->thread_pointer = 0;
	if (!wanted(s, proc->pid)) {
		tree_release(&s->tree, proc);
		tree_forget(&s->tree, proc);
		return;
	}
	proc->space = space_new(proc->pid, &err);
	if (!proc->space)
		return;
	proc->session = rec = record_new(s, proc, parent);
	if (s->detached) /* an exec during the detach has removed the hooks */
		return;
	/* The process may be gone when this returns; its record stays. */
	if (session_hook(s, proc, true, &err) < 0 && err.code != SB_ENOPROC)
		session_bar(s, rec, &err);
	window_apply(s, rec);
}

static void on_ended(void *ctx, struct proc *proc, int status)
{
	(void)status;
	leave_space(ctx, proc);
}

/* 0: it has that of the thread that started it, and gets its own later (Go). */
static uint64_t own_pointer(const struct thread *thread, uint64_t pointer)
{
	for (const struct thread *t = thread->proc->threads; t; t = t->next)
		if (t != thread && t->thread_pointer == pointer)
			return 0;
	return pointer;
}

/* With a thread filter, a thread is entered before its first instruction. So it is where its calls
 * are recorded. */
static void on_thread_new(void *ctx, struct thread *thread)
{
	struct inject_session *s = ctx;
	struct arch_regs regs;

	if (s->value_cost_known && thread->proc->space && pt_get_regs(thread->tid, &regs) >= 0)
		space_stack(thread->proc->space, &regs);
	if ((!s->filtered && !s->tracing && !s->cfg->name_threads) ||
	    pt_get_regs(thread->tid, &regs) < 0)
		return;
	thread->thread_pointer = own_pointer(thread, arch->thread_pointer(&regs));
	if (!thread->thread_pointer)
		return;
	window_name_thread(s, thread->proc->session, thread->tid, thread->thread_pointer);
	if (s->tracing)
		tracing_thread(s->tracing, thread->proc->pid, thread->tid, thread->thread_pointer,
			       false);
}

/* int3: the thread continues in the stub. */
static bool on_trapped(void *ctx, struct thread *thread)
{
	struct space *space = thread->proc->space;

	(void)ctx;
	return space && trap_to_stub(space, thread);
}

static bool on_faulted(void *ctx, struct thread *thread)
{
	struct space *space = thread->proc->space;

	(void)ctx;
	return space && trap_pass_fault(space, thread);
}

const struct tree_ops session_tree_ops = {
	.forked = on_forked,
	.execed = on_execed,
	.ended = on_ended,
	.thread_new = on_thread_new,
	.trapped = on_trapped,
	.faulted = on_faulted,
};

static void answer(struct inject_session *s, struct record *rec)
{
	const struct page *page = &rec->space->control->page;
	struct sb_page_proc *p = page_proc(page, rec->space->proc);
	uint32_t ring = __atomic_load_n(&page_ring(page, rec->space->proc)->ring, __ATOMIC_ACQUIRE);
	struct proc *proc = tree_proc(&s->tree, rec->pid);
	struct sb_err err = { 0 };

	if (ring == p->done)
		return;
	if (proc && (python_may_start(s, rec) || !session_same_code(rec)) &&
	    session_retake(s, proc, &err) == 0) {
		if (!python_ring(s, rec) && session_hook(s, proc, true, &err) < 0 &&
		    err.code != SB_ENOPROC)
			session_warn(s, "process %d: a library loaded later is not hooked: %s",
				     rec->pid, err.what);
		window_apply(s, rec);
	}
	session_untrace(s);
	if (rec->ended || !rec->space || !rec->space->control)
		return;
	/* It may have got a page of its own meanwhile. */
	p = page_proc(&rec->space->control->page, rec->space->proc);
	__atomic_store_n(&p->done, ring, __ATOMIC_RELEASE);
	syscall(SYS_futex, &p->done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Processes that were never seen ring at process 0: they are answered without a search. So are
 * processes that are being released. */
void session_rings(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->space && rec->space->control) {
			if (rec->space->proc)
				answer(s, rec);
			if (!rec->ended)
				page_answer(&rec->space->control->page, 0);
		}
	unrecorded_answer(s);
}

/* Seizes the tree. Children that are born meanwhile are followed, or the next pass finds them. */
int session_take_all(struct inject_session *s, struct sb_err *err)
{
	size_t n, taken;
	pid_t *pids;

	if (s->cfg->launched) {
		struct proc *proc;
		int ret = tree_add(&s->tree, s->cfg->launched, getppid(), &proc, err);

		if (ret == 0)
			proc->generation = NO_IMAGE; /* its first exec loads the program itself */
		return ret;
	}
	do {
		taken = 0;
		processes_descendants(s->cfg, &pids, &n);
		for (size_t i = 0; i < n; i++) {
			struct sb_err why = { 0 };

			if (tree_proc(&s->tree, pids[i]))
				continue;
			if (session_take(s, pids[i], task_parent(pids[i]), &why) == 0) {
				taken++;
			} else if (i < s->cfg->n_pids) {
				*err = why;
				free(pids);
				return -(int)why.code;
			} else if (why.code != SB_ENOPROC) {
				session_warn(s, "%s; it is left out", why.what);
			}
		}
		free(pids);
	} while (taken);
	return 0;
}
