/* SPDX-License-Identifier: MIT */
/* Removes the hooks from a process that is not followed, and releases it. */
#include "priv.h"

/* --no-children: the fork has our bytes in its text; they are removed before it runs on. */
void session_let_go(struct inject_session *s, struct proc *child)
{
	struct space *space = space_get(child->space);
	struct space_restored done;
	struct sb_err err = { 0 };
	pid_t pid = child->pid;

	if (space_restore(space, &s->tree, false, &done, &err) < 0 && err.code != SB_ENOPROC)
		session_warn(s, "process %d, a child: %s", pid, err.what);
	if (space->proc)
		page_proc_free(&space->control->page, space->proc);
	space_put(space);
	child = tree_proc(&s->tree, pid);
	if (!child)
		return;
	tree_release(&s->tree, child);
	space_put(child->space);
	tree_forget(&s->tree, child);
}
