/* SPDX-License-Identifier: MIT */
/* The processes of a session of uprobes, from the events of the kernel. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "priv.h"
#include "inject/clock.h"
#include "inject/tree-task.h"
#include "src/base/text.h"

/* ---- membership ---- */

uint64_t usession_root(struct uprobe_session *s, pid_t pid)
{
	if (!pid)
		return s->cfg->all ? 0 : UPROBE_TREE;
	for (unsigned int bit = 1; bit < UPROBE_SKIP_BIT; bit++) {
		if (!s->root_pid[bit])
			s->root_pid[bit] = pid;
		if (s->root_pid[bit] == pid)
			return 1ull << bit;
	}
	return 0;
}

/* The roots of a process, by its current ancestors in /proc. */
static uint64_t roots_of(const struct uprobe_session *s, pid_t pid)
{
	uint64_t roots = 0;

	for (pid_t up = pid; up > 0; up = task_parent(up))
		for (unsigned int bit = 1; bit < UPROBE_SKIP_BIT && s->root_pid[bit]; bit++)
			if (s->root_pid[bit] == up && (s->cfg->children || up == pid))
				roots |= 1ull << bit;
	return roots;
}

static int enter(struct uprobe_session *s, pid_t pid, uint64_t roots, uint32_t generation,
		 struct sb_err *err)
{
	uint32_t row;

	if (uprobes_watch(s->u, pid, roots, generation, &row, err) < 0)
		return -(int)err->code;
	if (!usession_record(s, row))
		usession_record_new(s, pid, row, generation);
	return 0;
}

/* The kernel enters children that are born meanwhile, or the next pass finds them. */
static int take_tree(struct uprobe_session *s, struct sb_err *err)
{
	size_t n, taken;
	pid_t *pids;
	int ret = 0;

	do {
		taken = 0;
		processes_descendants(s->cfg, &pids, &n);
		for (size_t i = 0; i < n && ret == 0; i++) {
			if (usession_record_of(s, pids[i]))
				continue;
			ret = enter(s, pids[i], UPROBE_TREE | roots_of(s, pids[i]), 0, err);
			taken++;
		}
		free(pids);
		usession_hear(s);
	} while (taken && ret == 0);
	return ret;
}

int usession_roots(struct uprobe_session *s, struct sb_err *err)
{
	pid_t *all;
	size_t n = s->cfg->all ? processes_all(&all) : 0;
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++) {
		uint64_t roots = roots_of(s, all[i]);

		if (roots)
			ret = enter(s, all[i], roots, 0, err);
	}
	if (s->cfg->all)
		free(all);
	for (struct urecord *rec = s->records; rec && ret == 0 && !s->cfg->all; rec = rec->next) {
		uint64_t roots = rec->ended ? 0 : roots_of(s, rec->pid);

		if (roots)
			ret = enter(s, rec->pid, roots, rec->generation, err);
	}
	return ret;
}

static int skip_own(struct uprobe_session *s, struct sb_err *err)
{
	uint32_t row;
	int ret = uprobes_watch(s->u, getpid(), 1ull << UPROBE_SKIP_BIT, 0, &row, err);

	for (size_t i = 0; i < s->cfg->n_skip && ret == 0; i++)
		ret = uprobes_watch(s->u, s->cfg->skip[i], 1ull << UPROBE_SKIP_BIT, 0, &row, err);
	return ret;
}

int usession_take_all(struct uprobe_session *s, struct sb_err *err)
{
	if (s->cfg->all) {
		int ret = skip_own(s, err);

		return ret < 0 ? ret : usession_roots(s, err);
	}
	if (s->cfg->launched) /* its first exec loads the program itself */
		return enter(s, s->cfg->launched, UPROBE_TREE | roots_of(s, s->cfg->launched), -1u,
			     err);
	return take_tree(s, err);
}

bool usession_running(const struct uprobe_session *s)
{
	if (s->cfg->all)
		return true;
	if (s->cfg->launched)
		return usession_record_of(s, s->cfg->launched);
	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			return true;
	return false;
}

/* ---- events ---- */

/* There are more processes than were taken: the loader's notice is armed for all from now on. */
static void grow(struct uprobe_session *s)
{
	if (s->grown || s->cfg->all)
		return;
	s->grown = true;
	/* Includes those that loaded something before the one place for all was armed. */
	for (struct urecord *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && usession_awaits(s))
			usession_look(s, rec->pid, rec->row);
}

static void see_fork(struct uprobe_session *s, const struct uprobe_event *e)
{
	struct urecord *rec = usession_record(s, e->row), *parent = usession_record(s, e->parent);

	if (!rec)
		rec = usession_record_new(s, (pid_t)e->pid, e->row, e->generation);
	/* Its libraries ring only if the place for all is armed; otherwise its own map is
	 * searched. */
	if (parent && usession_hears_all(s))
		rec->image = parent->image;
	grow(s);
}

static void see_exec(struct uprobe_session *s, const struct uprobe_event *e)
{
	struct urecord *old = usession_record_of(s, (pid_t)e->pid);

	if (old && old->row != e->row)
		usession_end_record(s, old);
	if (!usession_record(s, e->row))
		usession_record_new(s, (pid_t)e->pid, e->row, e->generation);
	grow(s);
	if (!s->cfg->all)
		usession_look(s, (pid_t)e->pid, e->row);
}

static void see_exit(struct uprobe_session *s, const struct uprobe_event *e)
{
	struct urecord *rec = usession_record(s, e->row);

	if (rec)
		usession_end_record(s, rec);
}

static void see_first(struct uprobe_session *s, const struct uprobe_event *e)
{
	if (!usession_record(s, e->row))
		usession_record_new(s, (pid_t)e->pid, e->row, e->generation);
}

/* From now on its mappings differ from those of its parent and of its own forks. */
static void see_doorbell(struct uprobe_session *s, const struct uprobe_event *e)
{
	for (struct urecord *rec = s->records; rec; rec = rec->next) {
		if (rec->row == e->row || rec->image == e->row)
			rec->image = rec->row;
		rec->rung |= rec->row == e->row;
	}
}

/* If a program loads libraries faster than they are searched, one look is enough. */
static void look_where_rung(struct uprobe_session *s)
{
	for (struct urecord *rec = s->records; rec; rec = rec->next) {
		if (!rec->rung || rec->ended)
			continue;
		rec->rung = false;
		usession_look(s, rec->pid, rec->row);
	}
}

static void on_event(void *ctx, const struct uprobe_event *e)
{
	static void (*const handlers[])(struct uprobe_session *, const struct uprobe_event *) = {
		[UPROBE_EVENT_FORK] = see_fork,	    [UPROBE_EVENT_EXEC] = see_exec,
		[UPROBE_EVENT_EXIT] = see_exit,	    [UPROBE_EVENT_FIRST] = see_first,
		[UPROBE_EVENT_BELL] = see_doorbell,
	};

	/* Our own children. */
	if (e->roots >> UPROBE_SKIP_BIT & 1)
		return;
	if (e->kind < sizeof(handlers) / sizeof(*handlers))
		handlers[e->kind](ctx, e);
}

/* If events were lost, ended processes are found in /proc. */
static void catch_up(struct uprobe_session *s)
{
	uint64_t lost = uprobes_lost_events(s->u);

	if (lost == s->lost)
		return;
	if (!s->lost)
		session_warn(s, "processes started and ended faster than sbinject could record "
				"them: some of them have no row of their own");
	s->lost = lost;
	for (struct urecord *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && task_ended(rec->pid))
			usession_end_record(s, rec);
}

void usession_hear(struct uprobe_session *s)
{
	uprobes_events(s->u, on_event, s);
	if (!s->detached)
		look_where_rung(s);
	catch_up(s);
}
