/* SPDX-License-Identifier: MIT */
/*
 * The lists of a tree: finding, adding and removing its processes and threads, and freeing their
 * memory (tree_bury()).
 */
#include <sched.h>
#include <stdlib.h>
#include "tree-task.h"
#include "src/base/must.h"

/* That this thread may run on. The call fails where there are more than the set holds. */
static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 2;
}

void tree_init(struct tree *tree, const struct tree_ops *ops, void *ctx)
{
	memset(tree, 0, sizeof(*tree));
	tree->ops = ops;
	tree->ctx = ctx;
	tree->stays_awake = processors() > 1;
}

struct thread *tree_thread(const struct tree *tree, pid_t tid)
{
	struct thread *t = tree->hash[(unsigned int)tid % TREE_BUCKETS];

	while (t && t->tid != tid)
		t = t->hash_next;
	return t;
}

struct proc *tree_proc(const struct tree *tree, pid_t pid)
{
	struct proc *p = tree->procs;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

struct thread *tree_thread_new(struct tree *tree, struct proc *proc, pid_t tid)
{
	struct thread **bucket = &tree->hash[(unsigned int)tid % TREE_BUCKETS];
	struct thread *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->tid = tid;
	t->proc = proc;
	t->next = proc->threads;
	proc->threads = t;
	t->hash_next = *bucket;
	*bucket = t;
	return t;
}

/* Removes it from the lists but keeps its `next`: a walk that is at this thread can go on. */
void tree_thread_free(struct tree *tree, struct thread *thread)
{
	struct thread **at = &tree->hash[(unsigned int)thread->tid % TREE_BUCKETS];

	if (thread->state == THREAD_GONE)
		return;
	while (*at != thread)
		at = &(*at)->hash_next;
	*at = thread->hash_next;
	at = &thread->proc->threads;
	while (*at != thread)
		at = &(*at)->next;
	*at = thread->next;
	thread->state = THREAD_GONE;
	thread->hash_next = tree->gone_threads;
	tree->gone_threads = thread;
}

struct proc *tree_proc_new(struct tree *tree, pid_t pid, pid_t parent)
{
	struct proc *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->pid = pid;
	p->parent = parent;
	p->traced = true;
	p->next = tree->procs;
	tree->procs = p;
	return p;
}

void tree_free_threads(struct tree *tree, struct proc *proc)
{
	struct thread *next;

	for (struct thread *t = proc->threads; t; t = next) {
		next = t->next;
		tree_thread_free(tree, t);
	}
}

void tree_forget(struct tree *tree, struct proc *proc)
{
	struct proc **at = &tree->procs;

	while (*at && *at != proc)
		at = &(*at)->next;
	if (!*at)
		return;
	tree_free_threads(tree, proc);
	*at = proc->next;
	proc->ended = true;
	proc->traced = false;
	proc->space = NULL;
	proc->session = NULL;
	proc->buried = tree->gone_procs;
	tree->gone_procs = proc;
}

struct thread *tree_next_thread(const struct tree *tree, const struct space *space, pid_t after)
{
	bool take = !after;

	for (struct proc *p = tree->procs; p; p = p->next) {
		for (struct thread *t = p->threads; t && p->space == space; t = t->next) {
			if (take)
				return t;
			take = t->tid == after;
		}
	}
	return NULL;
}

size_t tree_count_threads(const struct tree *tree, const struct space *space)
{
	size_t n = 0;

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next)
			n++;
	return n;
}

void tree_bury(struct tree *tree)
{
	while (tree->gone_threads) {
		struct thread *t = tree->gone_threads;

		tree->gone_threads = t->hash_next;
		free(t);
	}
	while (tree->gone_procs) {
		struct proc *p = tree->gone_procs;

		tree->gone_procs = p->buried;
		free(p);
	}
}

void tree_free(struct tree *tree)
{
	while (tree->procs)
		tree_forget(tree, tree->procs);
	tree_bury(tree);
	free(tree->orphans);
	tree->orphans = NULL;
	tree->n_orphans = 0;
}
