/* SPDX-License-Identifier: MIT */
/*
 * --no-follow: a process is traced only while it is changed. Meanwhile its births are traced, too:
 * an unknown thread would run while text is written, and so would a vfork child, which lives in the
 * very memory that changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "priv.h"
#include "python.h"
#include "inject/tree-task.h"
#include "src/session/strays.h"

/* A target that forks without end is released over several steps of the session. */
enum { RELEASES_MOST = 256 };

static struct proc *sharer_of(const struct inject_session *s, pid_t pid)
{
	for (struct proc *p = s->tree.procs; p; p = p->next)
		if (p->pid != pid && p->traced && p->space &&
		    task_shares_memory(p->pid, pid, false))
			return p;
	return NULL;
}

bool session_share(struct inject_session *s, struct proc *proc)
{
	struct proc *other = sharer_of(s, proc->pid);

	if (!other)
		return false;
	proc->space = space_get(other->space);
	proc->session = record_of(s, proc->space);
	if (task_parent(proc->pid) == other->pid)
		proc->vfork_parent = other->pid;
	return true;
}

static void forget(struct inject_session *s, struct proc *proc)
{
	s->tree.ops->ended(s, proc, 0);
	tree_forget(&s->tree, proc);
}

/* True: it runs in the memory of a traced process and was unknown. */
static bool take_sharer(struct inject_session *s, pid_t pid)
{
	struct sb_err err = { 0 };
	struct proc *proc;

	if (tree_proc(&s->tree, pid) || !sharer_of(s, pid) ||
	    tree_add(&s->tree, pid, 0, &proc, &err) < 0)
		return false;
	if (session_share(s, proc))
		return true;
	/* It has made an exec meanwhile. */
	tree_release(&s->tree, proc);
	forget(s, proc);
	return true;
}

bool session_take_sharers(struct inject_session *s)
{
	bool any = false;
	pid_t *pids;
	size_t n;

	if (strays_find(s->cfg->strays, &pids, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		any |= take_sharer(s, pids[i]);
	free(pids);
	return any;
}

/* Takes the children of one thread. */
static bool take_children(struct inject_session *s, pid_t pid, pid_t tid)
{
	bool any = false;
	char path[64];
	int child;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1)
		any |= take_sharer(s, child);
	if (f)
		fclose(f);
	return any;
}

/* As session_take_sharers(), but without a look at every process of the machine, if the kernel
 * lists a thread's children (CONFIG_PROC_CHILDREN). New ones are at the head of the list. */
static bool take_sharers_of(struct inject_session *s, const struct space *space)
{
	bool any = false;

	if (access("/proc/thread-self/children", R_OK) < 0)
		return session_take_sharers(s);
	for (struct proc *p = s->tree.procs; p; p = p->next)
		for (struct thread *t = p->threads; t && p->traced && p->space == space;
		     t = t->next)
			any |= take_children(s, p->pid, t->tid);
	return any;
}

void session_hold_sharers(struct inject_session *s, const struct space *space)
{
	while (take_sharers_of(s, space))
		;
}

int session_retake(struct inject_session *s, struct proc *proc, struct sb_err *err)
{
	int ret;

	if (proc->traced)
		return 0;
	ret = tree_retake(&s->tree, proc, err);
	if (ret < 0)
		return ret;
	if (proc->space && memory_gone(&proc->space->mem)) {
		tree_release(&s->tree, proc);
		return memory_err_gone(proc->pid, err);
	}
	session_hold_sharers(s, proc->space);
	return 0;
}

/* A command is followed up to its first image. */
static bool hands_off(const struct inject_session *s)
{
	const struct proc *p;

	if (s->cfg->follow || !s->armed || s->detached)
		return false;
	p = s->cfg->launched ? tree_proc(&s->tree, s->cfg->launched) : NULL;
	return !p || p->generation != NO_IMAGE;
}

/* A command in an interpreter must complete first. */
static bool may_go(const struct inject_session *s, const struct proc *proc)
{
	return proc->traced && !(proc->session && python_busy(proc->session)) &&
	       !unrecorded_is(s, proc->pid);
}

/* A vfork child goes before its parent, which waits for it. */
static struct proc *next_to_go(const struct inject_session *s)
{
	struct proc *found = NULL;

	for (struct proc *p = s->tree.procs; p; p = p->next)
		if (may_go(s, p) && (!found || p->vfork_parent))
			found = p;
	return found;
}

/*
 * A child that shares its parent's memory is forgotten: its exec would go unseen, and its threads
 * would be taken for the parent's.
 */
static void go(struct inject_session *s, struct proc *proc)
{
	tree_release(&s->tree, proc);
	if (proc->space && proc->space->mem.pid != proc->pid)
		forget(s, proc);
}

void session_untrace(struct inject_session *s)
{
	struct proc *proc;

	/* A release dispatches the last events of a process, which may announce a new child. */
	for (int i = 0; i < RELEASES_MOST && hands_off(s) && (proc = next_to_go(s)); i++)
		go(s, proc);
}
