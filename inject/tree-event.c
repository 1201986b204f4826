/* SPDX-License-Identifier: MIT */
/*
 * The events of a traced tree. tree_dispatch() takes events one by one; each kind has its handler
 * in the table at the end. Children that arrive before their parent's event wait here.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "tree-task.h"
#include "src/base/log.h"

#define ORPHAN_NS     500000000ull
#define FIRST_STOP_US 500000

enum { ROUND = 64, NEXT_NS = 20000 };

/* A child's first stop may arrive before its parent's event; it waits here. */
static void orphan_add(struct tree *tree, const struct stop *stop)
{
	struct orphan *more = realloc(tree->orphans, (tree->n_orphans + 1) * sizeof(*more));

	if (!more)
		abort();
	more[tree->n_orphans++] = (struct orphan){ *stop, clock_ns() };
	tree->orphans = more;
}

static bool orphan_take(struct tree *tree, pid_t tid, struct stop *stop)
{
	for (size_t i = 0; i < tree->n_orphans; i++) {
		if (tree->orphans[i].stop.tid != tid)
			continue;
		*stop = tree->orphans[i].stop;
		tree->orphans[i] = tree->orphans[--tree->n_orphans];
		return true;
	}
	return false;
}

/*
 * It runs in the memory of its parent: the session counts it as part of that space from now on,
 * since it may end before its first stop, and so may its parent.
 */
static void share(struct tree *tree, struct proc *proc, struct proc *parent)
{
	if (!parent->space)
		return;
	proc->space = parent->space;
	proc->announced = true;
	tree->ops->forked(tree->ctx, proc, parent, true);
}

static struct proc *adopt_proc(struct tree *tree, struct thread *parent, pid_t tid, pid_t tgid,
			       enum stop_kind how)
{
	bool shares = task_shares_memory(parent->tid, tid, how == STOP_VFORK);
	struct proc *proc = tree_proc_new(tree, tgid, parent->proc->pid);

	proc->vfork_parent = how == STOP_VFORK && shares ? parent->proc->pid : 0;
	if (shares)
		share(tree, proc, parent->proc);
	return proc;
}

/* A new thread or process exists; its first stop follows, or has arrived already. */
static void adopt(struct tree *tree, struct thread *parent, pid_t tid, enum stop_kind how)
{
	struct proc *proc = parent->proc;
	struct thread *thread;
	struct stop stop;
	pid_t tgid;

	if (tree_thread(tree, tid))
		return;
	tgid = how == STOP_CLONE && task_is_thread(proc->pid, tid) ? proc->pid : task_tgid(tid);
	if (tgid && tgid != proc->pid)
		proc = adopt_proc(tree, parent, tid, tgid, how);
	thread = tree_thread_new(tree, proc, tid);
	thread->newborn = true;
	/*
	 * A new process is handled while its parent is still in the event: a daemon's parent is
	 * gone in a moment, and the state that its child inherits with it.
	 */
	if (orphan_take(tree, tid, &stop) ||
	    (proc != parent->proc && pt_wait(tid, &stop, FIRST_STOP_US)))
		tree_handle(tree, thread, &stop);
}

static void on_new_task(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	adopt(tree, thread, (pid_t)stop->message, stop->kind);
	if (thread->state != THREAD_GONE)
		pt_cont(thread->tid, 0);
}

bool tree_pass_clone(struct tree *tree, struct thread *thread, unsigned int timeout_us)
{
	if (!tree_event_pending(thread) || thread->stop.kind != STOP_CLONE || tree_forks(thread))
		return false;
	pt_interrupt(thread->tid);
	adopt(tree, thread, (pid_t)thread->stop.message, STOP_CLONE);
	pt_cont(thread->tid, 0);
	thread->state = THREAD_RUNNING;
	thread->interrupted = true;
	return tree_stop_thread(tree, thread, timeout_us);
}

/* The first stop of a thread: before any of its user code. */
static void on_birth(struct tree *tree, struct thread *thread)
{
	struct proc *proc = thread->proc;
	struct proc *parent = tree_proc(tree, proc->parent);
	pid_t tid = thread->tid;

	thread->newborn = false;
	thread->pinned = true;
	if (!proc->announced && parent) {
		proc->announced = true;
		tree->ops->forked(tree->ctx, proc, parent, false);
	}
	thread = tree_thread(tree, tid);
	if (!thread)
		return;
	tree->ops->thread_new(tree->ctx, thread);
	thread->pinned = false;
}

static void on_trap(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	pid_t tid = stop->tid;

	if (thread->newborn) {
		thread->stop = *stop;
		thread->state = THREAD_STOPPED;
		on_birth(tree, thread);
		thread = tree_thread(tree, tid);
		if (!thread) /* the session released it */
			return;
		thread->state = THREAD_RUNNING;
	} else {
		task_unnoticed(tid);
	}
	pt_cont(tid, 0);
}

/*
 * Job control can stop a newborn at once: the session is notified of it all the same. Listening
 * threads report when SIGCONT arrives.
 */
static void on_group(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	pid_t tid = stop->tid;

	if (thread->newborn) {
		thread->stop = *stop;
		thread->state = THREAD_STOPPED;
		on_birth(tree, thread);
		thread = tree_thread(tree, tid);
		if (!thread)
			return;
	}
	thread->state = THREAD_LISTENING;
	pt_listen(tid);
}

static void on_signal(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	bool fault = stop->sig == SIGSEGV || stop->sig == SIGBUS;

	task_signal_unnoticed(thread->tid, stop->sig);
	if ((stop->sig == SIGTRAP && tree->ops->trapped(tree->ctx, thread)) ||
	    (fault && tree->ops->faulted(tree->ctx, thread)))
		pt_cont(thread->tid, 0);
	else
		pt_cont(thread->tid, stop->sig);
}

static void on_syscall(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	(void)tree;
	(void)stop;
	pt_cont(thread->tid, 0);
}

/* exec ends every other thread; the thread that called it continues as the leader. */
static void on_exec(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	struct proc *proc = thread->proc;
	struct thread *t = proc->threads;
	pid_t tid = stop->tid;

	while (t) {
		struct thread *next = t->next;

		if (t != thread)
			tree_thread_free(tree, t);
		t = next;
	}
	proc->generation++;
	proc->vfork_parent = 0;
	thread->newborn = false;
	/* Out of the middle of execve, to where registers may be changed. */
	pt_interrupt(thread->tid);
	pt_cont(thread->tid, 0);
	thread->interrupted = true;
	if (!tree_stop_thread(tree, thread, 1000000))
		return;
	thread->held_since = 0; /* a new image: no code of it has run yet, so nothing was held up */
	thread->pinned = true;
	tree->ops->execed(tree->ctx, proc);
	thread = tree_thread(tree, tid);
	if (!thread)
		return;
	thread->pinned = false;
	tree_resume_thread(tree, thread);
}

static void on_gone(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	struct proc *proc = thread->proc;
	bool leader = thread->tid == proc->pid;

	tree_thread_free(tree, thread);
	if (proc->threads && !leader)
		return;
	proc->ended = true;
	tree->ops->ended(tree->ctx, proc, stop->status);
	tree_forget(tree, proc);
}

static void (*const handlers[])(struct tree *, struct thread *, const struct stop *) = {
	[STOP_SIGNAL] = on_signal, [STOP_GROUP] = on_group,	[STOP_TRAP] = on_trap,
	[STOP_FORK] = on_new_task, [STOP_VFORK] = on_new_task,	[STOP_CLONE] = on_new_task,
	[STOP_EXEC] = on_exec,	   [STOP_SYSCALL] = on_syscall, [STOP_GONE] = on_gone,
};

void tree_handle(struct tree *tree, struct thread *thread, const struct stop *stop)
{
	struct stop copy = *stop; /* the thread may stop anew in its handler */

	if (copy.kind == STOP_NONE || thread->state == THREAD_GONE)
		return;
	thread->kept = false;
	thread->interrupted = false; /* any stop consumes a pending interrupt */
	if (thread->async)
		task_note_restart(thread);
	thread->state = THREAD_RUNNING;
	handlers[copy.kind](tree, thread, &copy);
}

/*
 * An exec by another thread than the leader is reported under the leader's id, which may be gone
 * from the table already.
 */
static struct thread *exec_thread(struct tree *tree, const struct stop *stop)
{
	struct thread *former = tree_thread(tree, (pid_t)stop->message);
	struct proc *proc = former ? former->proc : tree_proc(tree, stop->tid);

	return proc ? tree_thread_new(tree, proc, stop->tid) : NULL;
}

static void dispatch_one(struct tree *tree, const struct stop *stop)
{
	struct thread *thread = tree_thread(tree, stop->tid);

	if (!thread && stop->kind == STOP_EXEC)
		thread = exec_thread(tree, stop);
	if (thread)
		tree_handle(tree, thread, stop);
	else if (stop->kind == STOP_TRAP || stop->kind == STOP_GROUP)
		orphan_add(tree, stop);
	else if (stop->kind != STOP_GONE)
		pt_cont(stop->tid, stop->kind == STOP_SIGNAL ? stop->sig : 0);
}

static size_t count_threads(const struct tree *tree)
{
	size_t n = 0;

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t; t = t->next)
			n++;
	return n;
}

/* Not the stop of a thread that a caller holds, nor one that must wait. */
static bool is_servable(const struct tree *tree, const struct stop *stop, tree_later_fn *later)
{
	const struct thread *t = tree_thread(tree, stop->tid);

	if (!later)
		return true;
	if (!t)
		return stop->kind != STOP_EXEC;
	return t->state != THREAD_STOPPED && !t->pinned && !later(tree->ctx, t, stop);
}

static bool serve(struct tree *tree, pid_t tid, tree_later_fn *later)
{
	struct stop stop;

	if (!pt_peek(tid, &stop) || !is_servable(tree, &stop, later) ||
	    !pt_wait(stop.tid, &stop, 0))
		return false;
	dispatch_one(tree, &stop);
	return true;
}

/*
 * Of several threads that have stopped the kernel reports the same first each time: here all have
 * their turn. By id: handlers may free any of them.
 */
static bool serve_each(struct tree *tree, tree_later_fn *later)
{
	size_t n = 0, most = count_threads(tree);
	pid_t *tids = malloc((most + 1) * sizeof(*tids));
	bool any = false;

	if (!tids)
		abort();
	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t; t = t->next)
			tids[n++] = t->tid;
	for (size_t i = 0; i < n; i++)
		any |= tree_thread(tree, tids[i]) && serve(tree, tids[i], later);
	free(tids);
	return any;
}

/*
 * A thread's birth and end are three events within microseconds, and for each the target waits
 * until the tracer has woken up, which takes as long as all of the rest: so soon after one of them
 * the tracer stays awake for the next. Not where it has no processor of its own to do that.
 */
static bool next_event(const struct tree *tree, struct stop *stop, bool soon)
{
	uint64_t since = clock_ns();

	while (!pt_wait(-1, stop, 0))
		if (!soon || !tree->stays_awake || clock_ns() - since > NEXT_NS)
			return false;
	return true;
}

bool tree_dispatch(struct tree *tree)
{
	struct stop stop;
	bool soon = false;

	for (int i = 0; i < ROUND; i++) {
		if (!next_event(tree, &stop, soon))
			return false;
		soon = stop.kind == STOP_CLONE || stop.kind == STOP_TRAP || stop.kind == STOP_GONE;
		dispatch_one(tree, &stop);
	}
	serve_each(tree, NULL);
	return true;
}

bool tree_serve(struct tree *tree, tree_later_fn *later)
{
	struct stop stop;
	bool any = false;

	for (int i = 0; i < ROUND && serve(tree, -1, later); i++)
		any = true;
	/* What the kernel names first may have to wait. */
	if (pt_peek(-1, &stop))
		any |= serve_each(tree, later);
	return any;
}

/*
 * A child without an event of its parent: identified by its thread group, else by its parent in
 * /proc.
 */
static void settle(struct tree *tree, const struct stop *stop)
{
	struct proc *proc = tree_proc(tree, task_tgid(stop->tid));
	struct proc *parent = tree_proc(tree, task_parent(stop->tid));
	struct thread *thread;

	if (!proc && !parent) {
		pt_detach(stop->tid, 0);
		return;
	}
	if (!proc) {
		proc = tree_proc_new(tree, stop->tid, parent->pid);
		if (task_shares_memory(parent->pid, stop->tid, false))
			share(tree, proc, parent);
	}
	thread = tree_thread_new(tree, proc, stop->tid);
	thread->newborn = true;
	tree_handle(tree, thread, stop);
}

void tree_settle(struct tree *tree)
{
	uint64_t now = clock_ns();
	size_t i = 0;

	while (i < tree->n_orphans) {
		struct stop stop = tree->orphans[i].stop;

		/* Its parent's event may be on the way: events arrive within microseconds. */
		if (now - tree->orphans[i].since_ns < ORPHAN_NS) {
			i++;
			continue;
		}
		tree->orphans[i] = tree->orphans[--tree->n_orphans];
		settle(tree, &stop);
	}
}

/* Resumes a stopped thread as its stop requires; events are dispatched first. */
void tree_resume_thread(struct tree *tree, struct thread *thread)
{
	if (thread->state != THREAD_STOPPED)
		return;
	tree_note_hold(tree, thread);
	thread->state = THREAD_RUNNING;
	tree_handle(tree, thread, &thread->stop);
}

void tree_run_thread(struct tree *tree, struct thread *thread)
{
	if (thread->state != THREAD_STOPPED || thread->stop.kind != STOP_GROUP) {
		tree_resume_thread(tree, thread);
		return;
	}
	tree_note_hold(tree, thread);
	thread->state = THREAD_RUNNING;
	thread->interrupted = false;
	pt_cont(thread->tid, 0);
}

bool tree_stop_thread(struct tree *tree, struct thread *thread, unsigned int timeout_us)
{
	if (thread->state == THREAD_STOPPED)
		return true;
	if (thread->state == THREAD_GONE || !tree_interrupt(thread))
		return false;
	if (!tree_await_stop(thread, timeout_us))
		return false;
	if (thread->stop.kind != STOP_GONE)
		return true;
	tree_resume_thread(tree, thread);
	return false;
}
