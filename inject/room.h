/* SPDX-License-Identifier: MIT */
#ifndef SB_ROOM_H
#define SB_ROOM_H

#include "entry.h"
#include "space.h"

#define ROOM_AGENT_NAME "sbinject-agent"

/*
 * sbinject's side of a room (page-abi.h): an agent in the target's interpreter, and how a
 * command gets to a thread that may run it.
 *
 * Life: room_open() maps the room, with the agent's bytes in it (one thread is borrowed);
 * room_targets() and room_ask() say what is wanted; room_step() is called until it is done;
 * room_close() takes everything out again, when nothing of it runs. Nothing here waits: a command
 * can take as long as the interpreter stays away from a point where it may run code.
 *
 * How a command gets there, see room-step.c: a thread that sleeps in the kernel without the GIL
 * is borrowed and takes it; else the interpreter is asked to run it by a pending call, of its main
 * thread's or of any's; a thread that stands at an interpreter's start bell runs it on the spot.
 * A command that takes more than a millisecond is done in pieces, each of which gets there so; the
 * program runs in between. Nobody outside of the room needs to know.
 */
struct room {
	struct space *space; /* counted reference */
	pid_t pid;
	uint64_t code;	     /* entry code, one page; the room lies right behind */
	uint64_t addr, size; /* of the room */
	uint64_t runtime, runtime_size;
	uint64_t eval, eval_size; /* see room_setup */
	bool gil;
	/* the command on its way */
	bool under_way, stopping, queued_any;
	bool saw_queued;	/* a call of ours may be on its way since run_ns was taken */
	pid_t queuer;		/* who has queued the last one; 0: none for this command */
	uint64_t queuer_run_ns; /* as run_ns */
	uint32_t pieces;	/* of the command that have been done */
	bool main_only;		/* the interpreter has no queue that all its threads look at */
	uint32_t asked;
	uint64_t asked_ns, queued_ns;
	uint64_t run_ns;      /* how long the main thread had run when it may have been in a call */
	pid_t busy_tid;	      /* another thread that never sleeps, and what it had run */
	uint64_t busy_run_ns; /* when it was looked at first */
	pid_t queue_from;     /* whose turn it was last to queue it */
	struct remote remote; /* remote.lent: the thread that carries it */
	uint32_t turn;	      /* of the thread that is lent: see entry.h */
	uint64_t lent_ns;
	pid_t unfit[16]; /* threads that turned out not to be the ones to borrow */
	size_t n_unfit;
	bool bell_only;	       /* only a thread at a start bell may bring the command in */
	uint64_t retry_ns;     /* not before this */
	bool ended;	       /* and room_ended() has said so */
	bool not_ready;	       /* the interpreter was found not to have started, or to have ended */
	const char *waits_for; /* what keeps it, for the user; NULL */
};

/*
 * function: by enum entry_function, in the target; agent: the shared object's bytes; eval, gil: as
 * in struct interpreter (elf/interpreter.h).
 */
struct room_setup {
	uint64_t function[ENTRY_FUNCTIONS];
	uint64_t runtime, runtime_size;
	uint64_t eval, eval_size;
	bool gil;
	const void *agent;
	size_t agent_size;
};

struct room_target {
	uint32_t cell, flags; /* enum sb_room_target_flags */
	const char *module, *name;
};

/* Maps it. On failure nothing is left. The space has its control page. */
int room_open(struct room **out, struct space *space, struct tree *tree, pid_t pid,
	      const struct room_setup *setup, struct sb_err *err);

/* The copy that a fresh fork has of its parent's room. */
struct room *room_fork(const struct room *parent, struct space *space, pid_t child);

/* What a dead tracer left in a process, as space_load() found it; NULL: nothing. A thread that it
 * had lent, and that has not begun, does nothing any more. */
struct room *room_load(struct space *space, struct tree *tree, pid_t pid);

/* The whole list; taken over with the next APPLY. SB_ENOMEM: it is too long. */
int room_targets(struct room *room, const struct room_target *target, size_t n, struct sb_err *err);

/* No command may be on its way. */
void room_ask(struct room *room, enum sb_agent_command command);
bool room_asked(const struct room *room); /* and room_step() has not said yet that it is done */

/*
 * Moves the command on. at_bell: a thread of this process that waits at a start bell, or 0.
 * True when it has been carried out; then no thread is lent any more.
 */
bool room_step(struct room *room, struct tree *tree, uint64_t now_ns, pid_t at_bell);

/* Takes the agent out: asks it to stop, once what it is doing is done. True when nothing of it
 * can run any more. */
bool room_evict(struct room *room, struct tree *tree, uint64_t now_ns);

/* What the agent said; the target can write it: texts are cut and made printable. */
struct room_answer {
	int status; /* enum sb_agent_error */
	char reason[256];
	uint32_t flags, python, matched;
	uint64_t cost_ticks;
	uint64_t held_ticks[2]; /* the longest hold of the GIL before STOP, and in STOP */
	bool loaded;
};
void room_answer(const struct room *room, struct room_answer *out);

/* The agent's interpreter has ended; another may have started. True once for each. */
bool room_ended(struct room *room);

/* Another tool took the agent out of the chain of frame evaluation functions (3.10, 3.11): an
 * APPLY puts it back. */
bool room_dropped(const struct room *room);

/* A thread is at work on a command, or lent for one. */
bool room_busy(const struct room *room);

/* True if no thread can be in the room's code or come there: it may be unmapped. */
bool room_is_quiet(const struct room *room);

/* Forgets; takes nothing out. */
void room_free(struct room *room);

/* The thread of the space that waits at a start bell, or 0. Threads run on exit. */
pid_t room_at_bell(struct space *space, struct tree *tree);

#endif
