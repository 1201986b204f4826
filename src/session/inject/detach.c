/* SPDX-License-Identifier: MIT */
/* The end of a session: removes everything from every process, whatever created the process. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "priv.h"
#include "device.h"
#include "python.h"
#include "src/base/log.h"
#include "src/session/strays.h"

/* The longest wait for another tracer. */
#define RETAKE_NS 5000000000ull

/* Its agent stays, and nothing else: no more can be done. */
static bool is_left(const struct inject_session *s, pid_t pid)
{
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (rec->pid == pid && (rec->python.stays || rec->device_stays))
			return true;
	return false;
}

/* Takes unknown processes that map one of our pages: forks of an untraced process. */
static void take_strays(struct inject_session *s)
{
	pid_t *pids, other;
	size_t n;

	if (strays_find(s->cfg->strays, &pids, &n, &other) < 0)
		return;
	if (other)
		session_warn(s,
			     "process %d maps this session's memory, but has other user or group "
			     "ids and is no child of a target: sbinject does not touch it",
			     other);
	for (size_t i = 0; i < n; i++) {
		struct sb_err err = { 0 };
		struct proc *proc;

		if (tree_proc(&s->tree, pids[i]) || processes_skipped(s->cfg, pids[i]) ||
		    is_left(s, pids[i]) || tree_add(&s->tree, pids[i], 0, &proc, &err) < 0)
			continue;
		if (space_load(pids[i], &proc->space, &err) < 0)
			proc->space = NULL;
		unrecorded_load(s, proc);
	}
	free(pids);
}

static uint64_t count_strays(const struct inject_session *s)
{
	pid_t *pids;
	size_t n;

	if (strays_find(s->cfg->strays, &pids, &n, NULL) < 0)
		return s->left_behind;
	free(pids);
	return n;
}

static void close_pages(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->space && rec->space->control)
			page_close_all(&rec->space->control->page);
}

/* A vfork child goes before its parent, which waits for it. */
static struct proc *next_to_release(const struct inject_session *s)
{
	for (struct proc *p = s->tree.procs; p; p = p->next)
		if (p->vfork_parent)
			return p;
	return s->tree.procs;
}

static bool hooks_in(const struct space *space)
{
	return space && (space->hooked || space_holds(space));
}

static void restore_space(struct inject_session *s, struct proc *proc)
{
	struct space_restored done = { 0 };
	struct space *space = proc->space;
	struct sb_err err = { 0 };
	pid_t pid = proc->pid;
	bool stays;

	if (!hooks_in(space))
		return;
	space_get(space);
	if (space_restore(space, &s->tree, true, &done, &err) < 0 && err.code != SB_ENOPROC) {
		s->left_behind = 1;
		session_warn(s, "%s%s%s", err.what, err.hint[0] ? "; " : "", err.hint);
	}
	s->left_behind |= done.left_mapped != NULL;
	stays = space->agent_stays; /* a warning was printed already */
	space_put(space);
	if (done.changed_by_others)
		session_warn(s,
			     "process %d: %zu places in its code were changed by another program "
			     "since and were left unchanged",
			     pid, done.changed_by_others);
	if (done.left_mapped && !stays)
		session_warn(s,
			     "process %d: %s; the code is restored, one mapping stays (sbinject "
			     "recover -p %d removes it later)",
			     pid, done.left_mapped, pid);
}

/*
 * Traces an untraced process again. A debugger may trace it now: the hooks no longer act, so there
 * is time to wait for its end, up to RETAKE_NS.
 */
static bool retake(struct inject_session *s, struct proc *proc)
{
	uint64_t end = clock_ns() + RETAKE_NS;
	struct sb_err err = { 0 };
	bool reported = false;

	while (tree_retake(&s->tree, proc, &err) < 0) {
		if (err.code != SB_ETRACED)
			return false;
		if (clock_ns() > end) {
			s->left_behind = 1;
			session_warn(s,
				     "%s: its hooks stay, and do nothing; sbinject recover -p %d "
				     "removes them when that has ended",
				     err.what, proc->pid);
			return false;
		}
		if (!reported)
			log_note("%s: waiting for that to end", err.what);
		reported = true;
		err = (struct sb_err){ 0 };
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	return true;
}

/*
 * Untraced processes may fork at any time, and a vfork child runs in the very memory that is about
 * to change: it must be held with its parent. Once the parents are traced again every birth is
 * seen; then a search finds children that were born before.
 */
static void retake_all(struct inject_session *s)
{
	struct proc *p;

	do {
		for (p = s->tree.procs; p && (p->traced || !hooks_in(p->space)); p = p->next)
			;
		if (p && !retake(s, p)) {
			s->tree.ops->ended(s, p, 0);
			tree_forget(&s->tree, p);
		}
	} while (p);
	while (session_take_sharers(s))
		tree_dispatch(&s->tree);
}

static void detach_one(struct inject_session *s, struct proc *proc)
{
	pid_t pid = proc->pid;

	if (proc->session)
		record_keep_regions(proc->session);
	restore_space(s, proc);
	proc = tree_proc(&s->tree, pid);
	if (!proc)
		return;
	tree_release(&s->tree, proc);
	s->tree.ops->ended(s, proc, 0);
	tree_forget(&s->tree, proc);
}

/* Detaches until no event is left: a child that was born just now may be the last process, and its
 * parent's event may still be pending. */
static void detach_all(struct inject_session *s)
{
	struct proc *proc;
	bool more;

	do {
		proc = next_to_release(s);
		if (proc)
			detach_one(s, proc);
		else if (s->tree.n_orphans)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		more = tree_dispatch(&s->tree);
		tree_settle(&s->tree);
		tree_bury(&s->tree);
	} while (more || s->tree.procs || s->tree.n_orphans);
}

void inject_detach(struct session_core *core)
{
	struct inject_session *s = session_of(core);

	session_hurry(true);
	python_explain_late(s);
	close_pages(s);
	tree_dispatch(&s->tree);
	device_stop(s);
	python_stop(s);
	unrecorded_stop(s);
	if (!s->cfg->follow)
		retake_all(s);
	detach_all(s);
	/* Now the rest: forks of untraced processes, children of killed parents. */
	take_strays(s);
	unrecorded_stop(s);
	detach_all(s);
	session_hurry(false);
	if (s->left_behind)
		s->left_behind = count_strays(s);
	for (struct record *rec = s->records; rec; rec = rec->next)
		record_end(s, rec);
	device_close(s);
	tracing_close(s->tracing, &s->traced);
	s->tracing = NULL;
	perfmap_close(s);
	s->hold_detach_ns = s->tree.longest_hold_ns;
}
