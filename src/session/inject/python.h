/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_PYTHON_H
#define SB_SESSION_PYTHON_H

#include "priv.h"
#include "inject/room.h"

/*
 * The session's Python targets: an agent in each interpreter of the tree, told which functions
 * to watch. Native targets need stops; these need the interpreter's help, and it can take a
 * while to give it: so each process has a small state machine here, moved on by every step.
 *
 * All of these do nothing in a session without Python targets.
 */

/* How many of the targets are Python's. */
bool python_wanted(const struct session *s);

/* No process of these has an interpreter that an agent can get into, and one has another: that. */
int python_check(const struct session *s, const pid_t *pids, size_t n, struct sb_err *err);

/*
 * Finds the interpreter of a process that was hooked just now, and gets the agent on its way:
 * at once where the process was running already, by doorbells at the interpreter's start where
 * it is fresh. May dispatch events; the process may be gone on return.
 */
int python_look(struct session *s, struct record *rec, struct space *space, pid_t pid, bool fresh,
		struct sb_err *err);

/* A doorbell was rung: true if it was an interpreter's start and nothing else. */
bool python_ring(struct session *s, struct record *rec);
/* An interpreter of it has not started, or starts anew: a ring may be its. */
bool python_may_start(struct session *s, struct record *rec);

/* Moves commands on; true while one is under way. */
bool python_step(struct session *s, uint64_t now);

/*
 * session/inject/unseen.c. python_peek(): whether the agent is still told of calls; if not it is to
 * come back (python.dirty). True while that is looked at closely. python_warn_unseen(): what keeps
 * its hits from being all of them, once each.
 */
bool python_peek(struct session *s, struct record *rec, uint64_t now);
void python_warn_unseen(struct session *s, struct record *rec);

/* What an interpreter is waited for, once, when that has taken a while. */
void python_say(struct record *rec, uint64_t now);

/* Half a millisecond in which events are dispatched and doorbells answered. */
void python_wait(struct session *s);

/* How long the agent has held the GIL at most, where there is one. */
void python_held(struct session *s, const struct record *rec);

/* A thread of this process carries a command, or will: it must stay traced. */
bool python_busy(const struct record *rec);

/* Settings of this process's page have changed; the agent is told where that switches a target
 * on or off (a delay it reads from the page itself), or where the list of targets changed. */
void python_changed(struct session *s, struct record *rec);
void python_relist(struct session *s);

/* A fork has what its parent has. */
void python_forked(struct record *child, const struct record *parent);

/* Waits until running interpreters have taken the targets over, or the user asks for the end.
 * False: some had not within patience_ms; python_warn_of_late() names them: their calls count from
 * when they come. */
bool python_settle(struct session *s, uint64_t patience_ms);
void python_warn_of_late(struct session *s, uint64_t patience_ms);

/* session/inject/leave.c. Takes every agent out; waits for that, and says what it waits for. */
void python_stop(struct session *s);

/*
 * session/inject/guest.c: agents in processes that have no record. guest_forked(): true if the fork
 * has one that must go before the fork can be let go. guest_load(): of a process that space_load()
 * knows. guests_step(): moves them on; true while one is at it. guests_let_go(): those that are
 * out. guests_stop(): waits for all of them, and forgets them.
 */
bool guest_forked(struct session *s, const struct proc *child, const struct proc *parent);
bool guest_is(const struct session *s, pid_t pid);
void guest_load(struct session *s, const struct proc *proc);
bool guests_step(struct session *s, uint64_t now);
void guests_answer(struct session *s); /* their doorbells */
void guests_let_go(struct session *s);
void guests_stop(struct session *s);
void guests_free(struct session *s);

/* Notes of functions found, out of a page that may be about to go. */
void python_notes(struct session *s, struct record *rec);

/* Into the result: the functions found, as sites. */
void python_sites(struct session *s, size_t target, const uint64_t *each, struct result_target *rt);
void python_sites_free(struct session *s);

#endif
