/* SPDX-License-Identifier: MIT */
/*
 * Agents in processes that have no record: forks that are released (--no-children), and processes
 * that were never seen. A fork contains its parent's agent at work, which goes on using the page.
 * So the agent gets a command to leave, like any other, before anything of ours is unmapped.
 */
#include <stdlib.h>
#include <time.h>
#include "python.h"

#define MS 1000000ull

enum { STOP_MS = 10000 };

struct unrecorded {
	pid_t pid;
	struct mailbox *mailbox;
	bool out; /* nothing of the agent can run any more */
};

static struct unrecorded *unrecorded_of(const struct inject_session *s, pid_t pid)
{
	for (size_t i = 0; i < s->n_unrecorded; i++)
		if (s->unrecorded[i].pid == pid)
			return &s->unrecorded[i];
	return NULL;
}

bool unrecorded_is(const struct inject_session *s, pid_t pid)
{
	return unrecorded_of(s, pid) != NULL;
}

static void unrecorded_add(struct inject_session *s, pid_t pid, struct mailbox *mailbox)
{
	s->unrecorded = realloc(s->unrecorded, (s->n_unrecorded + 1) * sizeof(*s->unrecorded));
	if (!s->unrecorded)
		abort();
	s->unrecorded[s->n_unrecorded++] = (struct unrecorded){ .pid = pid, .mailbox = mailbox };
}

static void unrecorded_drop(struct inject_session *s, size_t i)
{
	mailbox_free(s->unrecorded[i].mailbox);
	s->unrecorded[i] = s->unrecorded[--s->n_unrecorded];
}

bool unrecorded_forked(struct inject_session *s, const struct proc *child,
		       const struct proc *parent)
{
	const struct record *rec = parent->session;
	const struct unrecorded *unrecorded = unrecorded_of(s, parent->pid);
	const struct mailbox *from = rec	? rec->python.mailbox :
				     unrecorded ? unrecorded->mailbox :
						  NULL;
	struct mailbox *mailbox = from && child->space->mailbox_size ?
					  mailbox_fork(from, child->space, child->pid) :
					  NULL;

	if (!mailbox || mailbox_is_quiet(mailbox)) {
		mailbox_free(mailbox);
		return false;
	}
	unrecorded_add(s, child->pid, mailbox);
	return true;
}

void unrecorded_load(struct inject_session *s, const struct proc *proc)
{
	pid_t pid = proc->pid; /* the process may end meanwhile */
	struct mailbox *mailbox = proc->space ? mailbox_load(proc->space, &s->tree, pid) : NULL;

	if (mailbox)
		unrecorded_add(s, pid, mailbox);
}

/* An agent is gone if its process has ended or runs another program. */
static bool is_gone(const struct inject_session *s, const struct unrecorded *unrecorded)
{
	const struct proc *proc = tree_proc(&s->tree, unrecorded->pid);

	return !proc || proc->space != unrecorded->mailbox->space;
}

/* By index: the list may grow meanwhile, because events are dispatched. */
bool unrecorded_step(struct inject_session *s, uint64_t now)
{
	bool busy = false;

	for (size_t i = 0; i < s->n_unrecorded; i++) {
		struct mailbox *mailbox = s->unrecorded[i].mailbox;
		bool out;

		if (is_gone(s, &s->unrecorded[i])) {
			unrecorded_drop(s, i--);
			continue;
		}
		out = s->unrecorded[i].out || mailbox_evict(mailbox, &s->tree, now);
		s->unrecorded[i].out = out;
		busy |= !out;
	}
	return busy;
}

void unrecorded_answer(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_unrecorded; i++) {
		const struct space *space = s->unrecorded[i].mailbox->space;

		if (space->control && space->proc)
			page_answer(&space->control->page, space->proc);
	}
}

void unrecorded_let_go(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_unrecorded; i++) {
		pid_t pid = s->unrecorded[i].pid;
		struct proc *proc;

		if (!s->unrecorded[i].out)
			continue;
		unrecorded_drop(s, i--);
		proc = tree_proc(&s->tree, pid);
		if (proc)
			session_let_go(s, proc);
	}
}

static void stays(struct inject_session *s, const struct unrecorded *unrecorded)
{
	unrecorded->mailbox->space->agent_stays = true;
	session_warn(
		s,
		"process %d, a child: its interpreter reached no safe point, so the agent could "
		"not be removed and stays, idle; sbinject recover -p %d removes it later",
		unrecorded->pid, unrecorded->pid);
}

void unrecorded_stop(struct inject_session *s)
{
	uint64_t until = clock_ns() + STOP_MS * MS;

	while (unrecorded_step(s, clock_ns()) && clock_ns() < until) {
		session_wait(s);
	}
	for (size_t i = 0; i < s->n_unrecorded; i++)
		if (!s->unrecorded[i].out && !is_gone(s, &s->unrecorded[i]))
			stays(s, &s->unrecorded[i]);
	unrecorded_free(s);
}

void unrecorded_free(struct inject_session *s)
{
	while (s->n_unrecorded)
		unrecorded_drop(s, 0);
	free(s->unrecorded);
	s->unrecorded = NULL;
}
