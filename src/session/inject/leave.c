/* SPDX-License-Identifier: MIT */
/* The end of a session's Python targets: removes the agents from their interpreters. */
#include "python.h"

#include <string.h>
#include "inject/clock.h"

#define MS 1000000ull

enum { STOP_MS = 10000 };

static bool stop_one(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	struct proc *proc = tree_proc(&s->tree, rec->pid);
	struct sb_err err = { 0 };

	if (!proc || rec->ended || memory_gone(&rec->space->mem) ||
	    (!proc->traced && tree_retake(&s->tree, proc, &err) < 0))
		return true;
	if (!py->leaving)
		py->said = false;
	py->leaving = true;
	if (mailbox_evict(py->mailbox, &s->tree, now)) {
		python_held(s, rec);
		python_warn_unseen(s, rec);
		return true;
	}
	python_say(rec, now);
	return false;
}

static void left_behind(struct inject_session *s, struct record *rec)
{
	rec->space->agent_stays = rec->python.stays = true;
	session_warn(s,
		     "process %d: its interpreter reached no safe point (%s), so the agent could "
		     "not be removed and stays, idle; sbinject recover -p %d removes it later",
		     rec->pid,
		     rec->python.mailbox->waits_for ? rec->python.mailbox->waits_for :
						      "no reason known",
		     rec->pid);
}

/* An agent looks at no call while the windows are closed. */
static void explain_unopened(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets && !s->cfg->look_only; i++) {
		struct target *t = &s->target[i];

		if (t->spec->kind != SPEC_PYTHON || t->active_ns || t->why.code != SB_ENOSYMBOL)
			continue;
		t->why = (struct sb_err){ 0 };
		err_set(&t->why, SB_ENOSYMBOL, "its window never opened, so no call was examined");
		err_hint(&t->why, "start it earlier, or let it run longer");
	}
}

void python_stop(struct inject_session *s)
{
	uint64_t until = clock_ns() + STOP_MS * MS, now;
	bool all;

	explain_unopened(s);
	do {
		all = true;
		now = clock_ns();
		for (struct record *rec = s->records; rec; rec = rec->next)
			if (!rec->ended && rec->python.mailbox && !stop_one(s, rec, now))
				all = false;
		if (!all)
			python_wait(s);
	} while (!all && now < until);
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->python.mailbox && !mailbox_is_quiet(rec->python.mailbox) &&
		    !memory_gone(&rec->space->mem) && tree_proc(&s->tree, rec->pid))
			left_behind(s, rec);
}
