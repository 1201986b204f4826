/* SPDX-License-Identifier: MIT */
/*
 * Changes of a running session, from a second terminal or a sweep. Settings are stores into the
 * control pages; targets are planted and removed as at attach and detach.
 */
#include <stdlib.h>
#include "priv.h"
#include "python.h"
#include "inject/tree-task.h"
#include "src/base/must.h"

/* pid=: a process and its descendants, in any order of the list. */
static void scope_of(struct inject_session *s, size_t index)
{
	pid_t pid = s->target[index].spec->pid;

	for (struct record *rec = s->records; rec; rec = rec->next) {
		pid_t up = rec->pid;

		while (pid && up > 1 && up != pid)
			up = task_parent(up);
		rec->in_scope[index] = !pid || up == pid;
	}
}

/* Searches every process for the target and hooks it there; with --no-follow each process is traced
 * meanwhile. */
static void hook_everywhere(struct inject_session *s, size_t index)
{
	struct record *rec;

	for (s->round++; (rec = record_next(s)); rec->looked = s->round) {
		struct proc *proc = tree_proc(&s->tree, rec->pid);
		struct sb_err err = { 0 };

		if (!proc || proc->session != rec || session_retake(s, proc, &err) < 0)
			continue;
		if (session_hook_one(s, proc, index, &err) < 0 && err.code != SB_ENOPROC)
			session_warn(s, "process %d: %s", rec->pid, err.what);
		session_untrace(s);
	}
}

/* A target that a mapped module lacks, or that cannot be hooked, is an error here as at attach. */
static int judge(struct inject_session *s, size_t index, struct sb_err *err)
{
	struct target *t = &s->target[index];
	size_t n;
	pid_t *pids;

	if (t->planted || t->spec->kind == SPEC_PYTHON)
		return 0;
	if (t->n_refused) {
		err_set(err, t->clashes ? SB_EEXIST : SB_EREFUSED, "%s", t->refused[0].reason);
	} else if (t->module_seen && t->why.code && t->why.code != SB_ENOMODULE) {
		*err = t->why;
	} else {
		n = inject_pids(&s->core, &pids);
		target_check_file(t, pids, n, err);
		free(pids);
	}
	return -(int)err->code;
}

/* If address space is short, a page holds fewer targets. */
size_t inject_room(const struct session_core *core)
{
	size_t most = core->max_targets;

	for (const struct record *rec = session_of(core)->records; rec; rec = rec->next) {
		const struct control *c = !rec->ended && rec->space ? rec->space->control : NULL;

		if (c && c->page.lay.targets_max < most)
			most = c->page.lay.targets_max;
	}
	return most;
}

int inject_add(struct session_core *core, size_t index, struct sb_err *err)
{
	struct inject_session *s = session_of(core);
	const struct target *t = &s->target[index];
	int ret;

	if (!t->again)
		own_init(s, index);
	s->filtered |= t->spec->thread != NULL;
	scope_of(s, index);
	window_apply_target(s, index);
	hook_everywhere(s, index);
	ret = judge(s, index, err);
	if (ret < 0)
		return ret;
	if (t->spec->kind == SPEC_PYTHON)
		python_relist(s);
	window_threads(s);
	return 0;
}

/* The session's numbers of the sites of this target, as a set. */
static bool *cookies_of(const struct inject_session *s, size_t index)
{
	bool *set = must_calloc(s->n_sites + 1, sizeof(*set));

	for (size_t i = 0; i < s->n_sites; i++)
		set[i] = s->site[i].target == index && !s->site[i].doorbell;
	return set;
}

static int unplant_pass(struct inject_session *s, const bool *set, struct sb_err *err)
{
	int ret = 0;

	for (struct record *rec = s->records; rec && ret == 0; rec = rec->next) {
		struct proc *proc = rec->ended ? NULL : tree_proc(&s->tree, rec->pid);
		struct space *space;

		if (!proc || proc->session != rec || !rec->space ||
		    !space_has_hooks(rec->space, set, s->n_sites) ||
		    session_retake(s, proc, err) < 0)
			continue;
		space = space_get(rec->space);
		ret = space_unplant(space, &s->tree, set, s->n_sites, err);
		space_put(space);
		session_untrace(s);
		if (ret == -SB_ENOPROC)
			ret = 0;
	}
	return ret;
}

/* Repeats until no new process has appeared: a fork in progress has a copy of the hooks already. */
static int unplant(struct inject_session *s, size_t index, struct sb_err *err)
{
	bool *set = cookies_of(s, index);
	const struct record *newest;
	int ret;

	do {
		newest = s->records;
		ret = unplant_pass(s, set, err);
	} while (ret == 0 && s->records != newest);
	free(set);
	return ret;
}

int inject_remove(struct session_core *core, size_t index, struct sb_err *err)
{
	struct inject_session *s = session_of(core);
	struct target *t = &s->target[index];
	int ret = 0;

	window_apply_target(s, index);
	if (t->spec->kind == SPEC_PYTHON)
		python_relist(s);
	else
		ret = unplant(s, index, err);
	if (ret == 0)
		t->planted = false;
	return ret;
}

struct lane_list {
	struct inject_session *s;
	struct session_lane *lane;
	size_t n, cap;
	const struct record *rec;
	pid_t pid;
	size_t target;
};

static void add_sums(struct lane_list *list, size_t index, pid_t tid, const struct page_sums *sums)
{
	struct result_counts counts;

	counts_from_sums(list->s, list->target, sums, &counts);
	if (list->n == list->cap)
		list->lane = must(reallocarray(list->lane,
					       list->cap = list->cap ? list->cap * 2 : 64,
					       sizeof(*list->lane)));
	list->lane[list->n++] = (struct session_lane){
		.pid = list->pid,
		.tid = tid,
		.target = list->target,
		.slot = index,
		.hits = counts.hits,
		.injected_ns = counts.injected_ns,
		.overrun_ns = counts.overrun_ns,
	};
}

/* 0: not known, or a slot that threads share. */
static pid_t owner_tid(const struct lane_list *list, uint64_t owner)
{
	for (size_t i = 0; owner && i < list->rec->n_named; i++)
		if (~list->rec->named[i].pointer == owner)
			return list->rec->named[i].tid;
	return 0;
}

static void add_lane(void *ctx, size_t index, const struct sb_page_slot *slot)
{
	struct page_sums sums = { .hits = slot->hits,
				  .injected_ticks = slot->injected_ticks,
				  .overrun_ticks = slot->overrun_ticks };

	for (int i = 0; i < SB_PAGE_BUCKETS; i++)
		sums.delayed += slot->bucket[i];
	add_sums(ctx, index, owner_tid(ctx, slot->owner), &sums);
}

/* Adds the counts of ended processes and of processes that were never seen. */
static void add_others(struct inject_session *s, struct lane_list *list)
{
	list->pid = 0;
	for (list->target = 0; list->target < s->n_targets; list->target++) {
		struct page_sums sums;

		session_other_sums(s, list->target, &sums);
		if (sums.hits)
			add_sums(list, 0, 0, &sums);
	}
}

size_t inject_lanes(struct session_core *core, struct session_lane **lanes, uint64_t *t_ns)
{
	struct inject_session *s = session_of(core);
	struct lane_list list = { .s = s };

	*t_ns = clock_ns();
	for (const struct record *rec = s->records; rec; rec = rec->next) {
		if (rec->ended || !rec->space || !rec->space->proc || !rec->space->control)
			continue;
		list.pid = rec->pid;
		list.rec = rec;
		for (list.target = 0; list.target < s->n_targets; list.target++)
			if (!s->target[list.target].removed && rec->in_scope[list.target])
				page_each_slot(&rec->space->control->page, rec->space->proc,
					       (uint32_t)list.target, add_lane, &list);
	}
	add_others(s, &list);
	*lanes = list.lane;
	return list.n;
}

size_t inject_pids(struct session_core *core, pid_t **pids)
{
	size_t n = 0;

	*pids = NULL;
	for (const struct record *rec = session_of(core)->records; rec; rec = rec->next)
		if (!rec->ended)
			result_add_pid(pids, &n, rec->pid);
	return n;
}
