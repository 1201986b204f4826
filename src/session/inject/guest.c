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

struct guest {
	pid_t pid;
	struct room *room;
	bool out; /* nothing of the agent can run any more */
};

static struct guest *guest_of(const struct inject_session *s, pid_t pid)
{
	for (size_t i = 0; i < s->n_guests; i++)
		if (s->guest[i].pid == pid)
			return &s->guest[i];
	return NULL;
}

bool guest_is(const struct inject_session *s, pid_t pid)
{
	return guest_of(s, pid) != NULL;
}

static void guest_add(struct inject_session *s, pid_t pid, struct room *room)
{
	s->guest = realloc(s->guest, (s->n_guests + 1) * sizeof(*s->guest));
	if (!s->guest)
		abort();
	s->guest[s->n_guests++] = (struct guest){ .pid = pid, .room = room };
}

static void guest_drop(struct inject_session *s, size_t i)
{
	room_free(s->guest[i].room);
	s->guest[i] = s->guest[--s->n_guests];
}

bool guest_forked(struct inject_session *s, const struct proc *child, const struct proc *parent)
{
	const struct record *rec = parent->session;
	const struct guest *guest = guest_of(s, parent->pid);
	const struct room *from = rec ? rec->python.room : guest ? guest->room : NULL;
	struct room *room = from && child->space->room_size ?
				    room_fork(from, child->space, child->pid) :
				    NULL;

	if (!room || room_is_quiet(room)) {
		room_free(room);
		return false;
	}
	guest_add(s, child->pid, room);
	return true;
}

void guest_load(struct inject_session *s, const struct proc *proc)
{
	pid_t pid = proc->pid; /* the process may end meanwhile */
	struct room *room = proc->space ? room_load(proc->space, &s->tree, pid) : NULL;

	if (room)
		guest_add(s, pid, room);
}

/* An agent is gone if its process has ended or runs another program. */
static bool is_gone(const struct inject_session *s, const struct guest *guest)
{
	const struct proc *proc = tree_proc(&s->tree, guest->pid);

	return !proc || proc->space != guest->room->space;
}

/* By index: the list may grow meanwhile, because events are dispatched. */
bool guests_step(struct inject_session *s, uint64_t now)
{
	bool busy = false;

	for (size_t i = 0; i < s->n_guests; i++) {
		struct room *room = s->guest[i].room;
		bool out;

		if (is_gone(s, &s->guest[i])) {
			guest_drop(s, i--);
			continue;
		}
		out = s->guest[i].out || room_evict(room, &s->tree, now);
		s->guest[i].out = out;
		busy |= !out;
	}
	return busy;
}

void guests_answer(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_guests; i++) {
		const struct space *space = s->guest[i].room->space;

		if (space->control && space->proc)
			page_answer(&space->control->page, space->proc);
	}
}

void guests_let_go(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_guests; i++) {
		pid_t pid = s->guest[i].pid;
		struct proc *proc;

		if (!s->guest[i].out)
			continue;
		guest_drop(s, i--);
		proc = tree_proc(&s->tree, pid);
		if (proc)
			session_let_go(s, proc);
	}
}

static void stays(struct inject_session *s, const struct guest *guest)
{
	guest->room->space->agent_stays = true;
	session_warn(
		s,
		"process %d, a child: its interpreter reached no safe point, so the agent could "
		"not be removed and stays, idle; sbinject recover -p %d removes it later",
		guest->pid, guest->pid);
}

void guests_stop(struct inject_session *s)
{
	uint64_t until = clock_ns() + STOP_MS * MS;

	while (guests_step(s, clock_ns()) && clock_ns() < until) {
		session_wait(s);
	}
	for (size_t i = 0; i < s->n_guests; i++)
		if (!s->guest[i].out && !is_gone(s, &s->guest[i]))
			stays(s, &s->guest[i]);
	guests_free(s);
}

void guests_free(struct inject_session *s)
{
	while (s->n_guests)
		guest_drop(s, 0);
	free(s->guest);
	s->guest = NULL;
}
