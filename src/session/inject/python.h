/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_PYTHON_H
#define SB_SESSION_PYTHON_H

#include "priv.h"
#include "inject/mailbox.h"

/*
 * The Python targets of a session: an agent in each interpreter of the tree, which watches the
 * functions. A native target needs stops of threads. A Python target needs the interpreter to run a
 * command, which may take a while; so each process has a small state machine here, advanced by
 * every step.
 *
 * All of these functions do nothing in a session without Python targets.
 */

/* Has the session Python targets? */
bool python_wanted(const struct inject_session *s);

/* SB_EREFUSED: these processes have interpreters, but an agent can enter none of them. */
int python_check(struct inject_session *s, const pid_t *pids, size_t n, struct sb_err *err);

/*
 * Finds the interpreter of a process that was hooked just now, and starts to load the agent: at
 * once if the process was already running; by doorbells at the interpreter's start if the process
 * is fresh. May dispatch events; the process may be gone on return.
 */
int python_look(struct inject_session *s, struct record *rec, struct space *space, pid_t pid,
		bool fresh, struct sb_err *err);

/* A doorbell was rung. True: it was the start of an interpreter, and nothing else. */
bool python_ring(struct inject_session *s, struct record *rec);
/* An interpreter of the process has not started, or starts anew: a ring may come from it. */
bool python_may_start(struct inject_session *s, struct record *rec);

/* Advances commands; true while one is in progress. */
bool python_step(struct inject_session *s, uint64_t now);

/*
 * unseen.c. python_peek(): does the agent still receive calls? If not, it is put back
 * (python.dirty). True while frequent looks are needed. python_warn_unseen(): warns of causes of
 * missing hits, each once.
 */
bool python_peek(struct inject_session *s, struct record *rec, uint64_t now);
void python_warn_unseen(struct inject_session *s, struct record *rec);

/* Reports once what an interpreter is waited for, when the wait is long. */
void python_say(struct record *rec, uint64_t now);

/* session_wait(), and keeps the leases. */
void python_wait(struct inject_session *s);

/* Records the longest time for which the agent has held the GIL, if there is one. */
void python_held(struct inject_session *s, const struct record *rec);

/* A thread of this process carries a command, or will: keep the process traced. */
bool python_busy(const struct record *rec);

/* Settings of this process's page have changed. The agent gets a command if a target is switched on
 * or off (it reads a delay from the page itself), or if the list of targets changed. */
void python_changed(struct inject_session *s, struct record *rec);
void python_relist(struct inject_session *s);

/* A fork has the agent of its parent. */
void python_forked(struct record *child, const struct record *parent);

/* Waits until running interpreters have applied the targets, or the user ends the run. False: some
 * had not done so within patience_ms. python_warn_of_late() names these; their calls count from
 * then on. Dispatches events. */
bool python_settle(struct inject_session *s, uint64_t patience_ms);
void python_warn_of_late(struct inject_session *s, uint64_t patience_ms);

/* At the end: gives targets that no interpreter has applied the reason for that. */
void python_explain_late(struct inject_session *s);

/* leave.c. Removes every agent and waits for that; reports what it waits for. Dispatches events. */
void python_stop(struct inject_session *s);

/*
 * unrecorded.c: agents in processes that have no record.
 *
 * - unrecorded_forked(): true if the fork has an agent that must go before the fork can be
 * released.
 * - unrecorded_load(): takes the agent of a process whose space space_load() has filled.
 * - unrecorded_step(): advances them; true while one is in progress.
 * - unrecorded_let_go(): releases the processes whose agents are gone.
 * - unrecorded_stop(): waits for all of them, and forgets them. Dispatches events.
 */
bool unrecorded_forked(struct inject_session *s, const struct proc *child,
		       const struct proc *parent);
bool unrecorded_is(const struct inject_session *s, pid_t pid);
void unrecorded_load(struct inject_session *s, const struct proc *proc);
bool unrecorded_step(struct inject_session *s, uint64_t now);
void unrecorded_answer(struct inject_session *s); /* answers their doorbells */
void unrecorded_let_go(struct inject_session *s);
void unrecorded_stop(struct inject_session *s);
void unrecorded_free(struct inject_session *s);

/* Reads the notes of found functions out of a page that may be about to go. */
void python_notes(struct inject_session *s, struct record *rec);

/* Adds the found functions to the result, as sites. */
void python_sites(struct inject_session *s, size_t target, const uint64_t *each,
		  struct result_target *rt);
void python_sites_free(struct inject_session *s);

#endif
