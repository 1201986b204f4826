/* SPDX-License-Identifier: MIT */
/*
 * Only processes with the same user and group ids share a control page: the ids of the process that
 * the page was made for. A fork that has changed its own ids, as a server's worker does, gets a
 * page of its own, so that it can write its own counts only. The kernel does not report such a
 * change, so the ids are read at intervals.
 */
#include <string.h>
#include "priv.h"
#include "python.h"
#include "src/base/log.h"

enum {
	LOOKS = 64, /* in a tick; other processes take their turn in one of the next */
	TRIES = 3,
};

static bool is_alone(const struct inject_session *s, const struct record *one)
{
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (rec != one && !rec->ended && rec->space &&
		    rec->space->control == one->space->control)
			return false;
	return true;
}

/* Does it share a page that was made for other ids? */
static bool is_stranger(const struct inject_session *s, const struct record *rec)
{
	const struct space *space = rec->space;
	struct task_ids ids;

	return space && space->control && space->proc && space->control->refs > 1 &&
	       task_read_ids(rec->pid, &ids) &&
	       memcmp(&ids, &space->control->ids, sizeof(ids)) != 0 && !is_alone(s, rec);
}

/* A thread that carries a command would be in the way; with --no-follow no process is held. */
static bool can_part(const struct inject_session *s, const struct record *rec)
{
	const struct proc *proc = tree_proc(&s->tree, rec->pid);

	return proc && proc->traced && proc->space == rec->space && !rec->python.at_work &&
	       !rec->looking && rec->part_tries < TRIES;
}

static void part(struct inject_session *s, struct record *rec)
{
	struct space *space = space_get(rec->space);
	struct control *old = NULL;
	struct sb_err err = { 0 };
	int ret;

	python_notes(s, rec);
	ret = session_part(s, space, rec->pid, &old, &err);
	if (old) {
		log_debug("process %d has changed its ids: it has counters of its own now",
			  rec->pid);
		record_left_page(s, old, space->proc);
		space_put_control(old);
	}
	if (ret < 0 && !rec->ended && tree_proc(&s->tree, rec->pid) && ++rec->part_tries == TRIES)
		session_warn(s,
			     "process %d has changed its user or group and shares counters with "
			     "its parent: %s",
			     rec->pid, err.what);
	space_put(space);
}

void ids_step(struct inject_session *s)
{
	size_t n = 0, turns, i = 0;

	for (const struct record *rec = s->records; rec; rec = rec->next)
		n += !rec->ended;
	turns = 1 + n / LOOKS;
	s->ids_turn = (s->ids_turn + 1) % turns;
	/* Records are added at the head meanwhile, and none is removed. */
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && i++ % turns == s->ids_turn && can_part(s, rec) &&
		    is_stranger(s, rec))
			part(s, rec);
}
