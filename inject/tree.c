/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clock.h"
#include "fault.h"
#include "tree-task.h"
#include "src/base/log.h"

enum { SEIZE_TRIES = 3, EXEC_TRIES = 3000, STOP_PATIENCE = 3, IN_EXEC = 1 << 30 };

/* How long the release of a process waits for threads deep in the kernel. */
#define KEPT_NS	 1000000000ull
#define DYING_NS 200000000ull

/* A leader whose place another thread takes by exec is a zombie for a moment. */
static int seize(pid_t pid, pid_t tid)
{
	int ret = pt_seize(tid);

	for (int i = 0;
	     ret == -EPERM && !task_tracer(tid) && i < SEIZE_TRIES && !task_is_dead(pid, tid); i++)
		ret = pt_seize(tid);
	return ret;
}

/*
 * Seizes threads not recorded yet; returns how many were new, IN_EXEC when one of them is in the
 * middle of an exec, or a negative code.
 */
static int seize_listed(struct tree *tree, struct proc *proc, struct sb_err *err)
{
	char path[64];
	struct dirent *e;
	int found = 0, ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", proc->pid);
	dir = opendir(path);
	if (!dir)
		return err_set(err, SB_ENOPROC, "process %d ended", proc->pid);
	while (ret != -EBUSY && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0 || tree_thread(tree, tid))
			continue;
		ret = seize(proc->pid, tid);
		if (ret == 0) {
			tree_thread_new(tree, proc, tid);
			found++;
			if (fault_point("seize", proc->pid)) {
				closedir(dir);
				return err_set(err, SB_ETARGET, "fault: seize");
			}
		} else if (ret == -EPERM && !task_is_ours(tid) && !task_is_dead(proc->pid, tid)) {
			closedir(dir);
			return task_seize_error(proc->pid, tid, err);
		}
	}
	closedir(dir);
	return ret == -EBUSY ? IN_EXEC : found;
}

/*
 * An exec waits until the tracer has seen the end of the threads that are seized already, also of
 * those born under trace; the thread that calls it takes the leader's id, and is not seized.
 */
static void let_exec(struct tree *tree, struct proc *proc)
{
	struct thread *next;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", proc->pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid > 0 && tid != proc->pid)
			pt_reap(tid);
	}
	if (dir)
		closedir(dir);
	for (struct thread *t = proc->threads; t; t = next) {
		next = t->next;
		if (!task_is_ours(t->tid))
			tree_thread_free(tree, t);
	}
}

/* An exec by a thread that was not seized yet has given the leader's id to that thread. */
static bool leader_is_new(struct tree *tree, struct proc *proc)
{
	struct thread *t = tree_thread(tree, proc->pid);

	if (!t || t->proc != proc || task_is_ours(proc->pid) || task_is_dead(proc->pid, proc->pid))
		return false;
	tree_thread_free(tree, t);
	return true;
}

/*
 * Threads made by a seized thread are seized with it, so that the list is complete once a pass
 * finds nothing new.
 */
static int seize_all(struct tree *tree, struct proc *proc, struct sb_err *err)
{
	int found, execs = 0;

	do {
		found = seize_listed(tree, proc, err);
		if (found != IN_EXEC)
			continue;
		let_exec(tree, proc);
		if (++execs == EXEC_TRIES)
			return err_set(err, SB_ETARGET, "process %d is in the middle of an exec",
				       proc->pid);
	} while (found > 0 || (found == 0 && leader_is_new(tree, proc)));
	if (found == 0 && !proc->threads)
		return err_set(err, SB_ENOPROC, "process %d ended", proc->pid);
	return found;
}

int tree_add(struct tree *tree, pid_t pid, pid_t parent, struct proc **out, struct sb_err *err)
{
	struct proc *proc = tree_proc_new(tree, pid, parent);
	int ret;

	proc->announced = true;
	ret = seize_all(tree, proc, err);
	if (ret < 0) {
		tree_release(tree, proc);
		tree_forget(tree, proc);
		return ret;
	}
	*out = proc;
	return 0;
}

int tree_retake(struct tree *tree, struct proc *proc, struct sb_err *err)
{
	int ret;

	if (proc->traced)
		return 0;
	if (proc->ended)
		return err_set(err, SB_ENOPROC, "process %d ended", proc->pid);
	ret = seize_all(tree, proc, err);
	if (ret < 0)
		tree_release(tree, proc);
	else
		proc->traced = true;
	return ret;
}

/*
 * A thread that does not stop is deep in the kernel: it waits for a vfork child, or for a disk. The
 * interrupt stays pending, so that it stops before it runs user code again.
 */
static bool thread_kept(struct thread *thread)
{
	if (!task_in_kernel(thread->tid))
		return false;
	thread->kept = true;
	return true;
}

/*
 * Inside a system call it may wait for long (vfork), and all other threads are held meanwhile: stop
 * waiting for it. A thread in a page fault gets its full time.
 */
static bool thread_waits(struct thread *thread)
{
	bool in_call;
	uint64_t pc;

	if (task_is_dead(thread->proc->pid, thread->tid) ||
	    (task_waits(thread->tid, &pc, &in_call) && in_call))
		return thread_kept(thread);
	return false;
}

static int stop_all(struct tree *tree, struct space *space)
{
	int missing = 0;

	for (struct proc *p = tree->procs; p; p = p->next)
		for (struct thread *t = p->threads; t && p->space == space; t = t->next)
			tree_interrupt(t);
	for (struct proc *p = tree->procs; p; p = p->next) {
		for (struct thread *t = p->threads; t && p->space == space; t = t->next) {
			if (t->state == THREAD_STOPPED || t->kept)
				continue;
			if (!tree_await_stop(t, 500) && !thread_waits(t) &&
			    !tree_await_stop(t, 20000) && !thread_kept(t))
				missing++;
		}
	}
	return missing;
}

int tree_stop(struct tree *tree, struct space *space, struct sb_err *err)
{
	for (int tries = 0; tries < 50; tries++) {
		if (!stop_all(tree, space))
			return 0;
	}
	tree_resume(tree, space);
	return err_set(err, SB_ETARGET, "a thread did not stop within a second");
}

int tree_stop_patiently(struct tree *tree, struct space *space, struct sb_err *err)
{
	struct sb_err why = { 0 };
	int ret = -1;

	for (int i = 0; i < STOP_PATIENCE && ret < 0; i++)
		ret = tree_stop(tree, space, &why);
	if (ret < 0) {
		err_set(err, why.code, "%s", why.what);
		err_hint(err,
			 "the machine is busy, or the thread is deep in the kernel: try again");
	}
	return ret;
}

void tree_resume(struct tree *tree, struct space *space)
{
	bool again;

	/* Plain stops first: an event's handler may take long, or change the lists. */
	for (struct proc *p = tree->procs; p; p = p->next) {
		for (struct thread *t = p->threads; t && p->space == space; t = t->next) {
			if (t->state != THREAD_STOPPED || t->stop.kind != STOP_TRAP || t->newborn ||
			    t->pinned)
				continue;
			tree_note_hold(tree, t);
			t->state = THREAD_RUNNING;
			task_unnoticed(t->tid);
			pt_cont(t->tid, 0);
		}
	}
	do {
		again = false;
		for (struct proc *p = tree->procs; p && !again; p = p->next) {
			struct thread *t = p->threads;

			while (t && (p->space != space || t->state != THREAD_STOPPED || t->pinned))
				t = t->next;
			if (t) {
				tree_resume_thread(tree, t);
				again = true;
			}
		}
	} while (again);
}

static bool all_kept(const struct tree *tree, const struct space *space)
{
	size_t n = 0;

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next, n++)
			if (!t->kept)
				return false;
	return n > 0;
}

/* By id: the end of one may free others. */
static bool look_at_kept(struct tree *tree, const struct space *space)
{
	bool any = false;
	struct thread *t;
	pid_t tid = 0;

	while ((t = tree_next_thread(tree, space, tid))) {
		tid = t->tid;
		if (!t->kept || t->state == THREAD_STOPPED || !tree_await_stop(t, 0))
			continue;
		any = true;
		if (t->stop.kind == STOP_GONE || t->stop.kind == STOP_EXEC) {
			tree_resume_thread(tree, t);
			tid = 0;
		}
	}
	return any;
}

void tree_await_kept(struct tree *tree, const struct space *space, unsigned int timeout_us)
{
	uint64_t end = clock_ns() + timeout_us * 1000ull;

	while (all_kept(tree, space) && !look_at_kept(tree, space) && clock_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

static void detach_thread(struct tree *tree, struct thread *t)
{
	if (t->stop.kind == STOP_TRAP)
		task_unnoticed(t->tid);
	if (t->stop.kind != STOP_GONE)
		pt_detach(t->tid, t->stop.kind == STOP_SIGNAL ? t->stop.sig : 0);
	fault_point("release", t->proc->pid);
	tree_note_hold(tree, t);
	tree_thread_free(tree, t);
}

/* Stops a thread for its release. False: it is deep in the kernel. */
static bool stop_to_release(struct thread *t)
{
	if (t->state == THREAD_STOPPED)
		return true;
	if (t->state == THREAD_LISTENING)
		pt_interrupt(t->tid);
	else
		tree_interrupt(t);
	return tree_await_stop(t, 500) || (!thread_kept(t) && tree_await_stop(t, 20000));
}

/* The next thread that is not recorded as deep in the kernel. */
static struct thread *next_to_release(const struct proc *proc)
{
	struct thread *t = proc->threads;

	while (t && t->kept)
		t = t->next;
	return t;
}

/*
 * Whether any thread will report something: a leader that ended before the others reports nothing
 * while they live.
 */
static bool any_will_report(const struct proc *proc)
{
	for (const struct thread *t = proc->threads; t; t = t->next)
		if (t->tid != proc->pid || !task_is_dead(proc->pid, t->tid))
			return true;
	return false;
}

/* In turn, since they may wait for each other: an exec for the end of all other threads. */
static void release_kept(struct tree *tree, struct proc *proc)
{
	uint64_t end = clock_ns() + KEPT_NS;
	struct thread *next;

	while (any_will_report(proc) && clock_ns() < end) {
		for (struct thread *t = proc->threads; t; t = next) {
			next = t->next;
			if (tree_await_stop(t, 200))
				detach_thread(tree, t);
		}
	}
}

/* One that is traced, and is not recorded. */
static void let_go(pid_t tid)
{
	struct stop stop;
	int sig = 0;

	pt_reap(tid);
	if (pt_peek(tid, &stop) && stop.kind == STOP_SIGNAL)
		sig = stop.sig;
	if (pt_detach(tid, sig) < 0)
		pt_interrupt(tid);
}

/*
 * An exec kills the other threads: one that was stopped does not take a PTRACE_DETACH any more, and
 * one that was born meanwhile has no event. The exec waits for ever until their end is seen.
 */
static bool release_dying(pid_t pid)
{
	char path[64];
	struct dirent *e;
	bool any = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0 || !task_is_ours(tid))
			continue;
		let_go(tid);
		any |= tid != pid || !task_is_dead(pid, tid);
	}
	if (dir)
		closedir(dir);
	return any;
}

void tree_release(struct tree *tree, struct proc *proc)
{
	struct thread *t;

	for (t = proc->threads; t; t = t->next)
		if (t->state == THREAD_RUNNING)
			tree_interrupt(t);
	/* The event of a fork is dispatched first, or the child would stay stopped. */
	while ((t = next_to_release(proc))) {
		if (!stop_to_release(t))
			t->kept = true;
		else if (tree_event_pending(t) && t->stop.kind != STOP_EXEC && !t->pinned)
			tree_resume_thread(tree, t);
		else
			detach_thread(tree, t);
	}
	/* No other thread is held while these are waited for. */
	release_kept(tree, proc);
	tree_free_threads(tree, proc);
	for (uint64_t end = clock_ns() + DYING_NS; release_dying(proc->pid) && clock_ns() < end;)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	proc->traced = false;
}
