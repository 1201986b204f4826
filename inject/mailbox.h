/* SPDX-License-Identifier: MIT */
#ifndef SB_MAILBOX_H
#define SB_MAILBOX_H

#include "entry.h"
#include "space.h"

#define ROOM_AGENT_NAME	 "sbinject-agent"
#define ROOM_DEVICE_NAME "sbinject-device"

/*
 * sbinject's side of a mailbox (page-abi.h): an agent in the target's interpreter, and how a
 * command gets to a thread that may run it.
 *
 * Life cycle: mailbox_open() maps the mailbox, with the agent's bytes in it (by a remote call);
 * mailbox_targets() and mailbox_ask() set what is to be done; mailbox_step() is called until it is
 * done; mailbox_evict() removes the agent. When nothing of it runs any more, space_restore() unmaps
 * the mailbox, and mailbox_free() frees the description. No function here waits: a command can take
 * as long as the interpreter stays away from a point where it may run code.
 *
 * How a command gets there, see mailbox-step.c: by a remote call, a thread that sleeps in the
 * kernel without the GIL takes the GIL; else the interpreter is made to run the command by a
 * pending call, of its main thread or of any thread; a thread that is at an interpreter's start
 * doorbell runs it on the spot. A command that takes more than a millisecond is done in pieces,
 * each of which gets there so; the program runs in between. Callers of this module need no
 * knowledge of it.
 */
struct mailbox {
	struct space *space; /* counted reference */
	pid_t pid;
	uint64_t code;	     /* entry code, one page; the mailbox lies directly behind it */
	uint64_t addr, size; /* of the mailbox */
	uint64_t runtime, runtime_size;
	uint64_t eval, eval_size; /* see mailbox_setup */
	bool gil;
	bool plain; /* see mailbox_setup */
	/* the command on its way */
	bool under_way, stopping, queued_any;
	bool saw_queued;	/* a pending call may be queued or running since run_ns was taken */
	pid_t queuer;		/* the thread that queued the last one; 0: none for this command */
	uint64_t queuer_run_ns; /* as run_ns */
	uint32_t pieces;	/* of the command that are done */
	bool main_only;		/* the interpreter has no queue that all its threads examine */
	uint32_t asked;
	uint64_t asked_ns, queued_ns;
	uint64_t run_ns;      /* the main thread's, when it may last have been in a call */
	pid_t busy_tid;	      /* another thread that never sleeps, and its run time */
	uint64_t busy_run_ns; /* when it was first seen */
	pid_t queue_from;     /* the thread that last had its turn to queue the command */
	struct remote remote; /* remote.async: the thread that carries out the command */
	uint32_t turn;	      /* of the remote call in progress: see entry.h */
	uint64_t async_ns;
	pid_t unfit[16]; /* threads that turned out to be unsuitable */
	size_t n_unfit;
	pid_t roomy[16]; /* threads whose stacks were large enough, at roomy_ns or a little later */
	size_t n_roomy;
	uint64_t roomy_ns;
	bool doorbell_only;    /* only a thread at a start doorbell may carry out the command */
	uint64_t retry_ns;     /* not before this */
	bool ended;	       /* and mailbox_ended() has reported it */
	bool not_ready;	       /* the interpreter was found not to have started, or to have ended */
	const char *waits_for; /* what delays it, for the user; NULL */
};

/*
 * function: indexed by enum entry_function, addresses in the target; agent: the shared object's
 * bytes; eval, gil: as in struct interpreter (elf/interpreter.h).
 */
struct mailbox_setup {
	uint64_t function[ENTRY_FUNCTIONS];
	uint64_t runtime, runtime_size;
	uint64_t eval, eval_size;
	bool gil;
	const void *agent;
	size_t agent_size;
	/*
	 * An agent that needs no interpreter: any thread that sleeps willingly carries out its
	 * command. Its room is beside the space's own mailbox: the owner of this one removes it by
	 * mailbox_unmap(), and its forks have no copy. `extra` bytes, a multiple of a page, lie at
	 * its end. loaded: the address of its function, where an earlier session has loaded it; 0:
	 * none has.
	 */
	bool plain;
	size_t extra;
	uint64_t loaded;
};

struct mailbox_target {
	uint32_t cell, flags; /* enum sb_mailbox_target_flags */
	const char *module, *name;
};

/* Maps the mailbox. On failure nothing is left in the target. The space has its control page. */
int mailbox_open(struct mailbox **out, struct space *space, struct tree *tree, pid_t pid,
		 const struct mailbox_setup *setup, struct sb_err *err);

/* Of a plain one: unmaps it, by a remote call. No thread may be in it. 0 or negative. */
int mailbox_unmap(struct mailbox *mailbox, struct tree *tree, struct sb_err *err);

/* The copy that a fresh fork has of its parent's mailbox. */
struct mailbox *mailbox_fork(const struct mailbox *parent, struct space *space, pid_t child);

/*
 * The remains of a dead tracer in a process, as space_load() found them; NULL: nothing. A remote
 * call of that tracer that has not begun its work does nothing any more.
 */
struct mailbox *mailbox_load(struct space *space, struct tree *tree, pid_t pid);

/* The same of a plain one. Also NULL where its header was not written: no thread has entered it. */
struct mailbox *mailbox_load_room(struct space *space, struct tree *tree, pid_t pid);

/* Sets the whole list; the next APPLY takes it over. SB_ENOMEM: it is too long. */
int mailbox_targets(struct mailbox *mailbox, const struct mailbox_target *target, size_t n,
		    struct sb_err *err);

/* Issues a command. No other may be under way. */
void mailbox_ask(struct mailbox *mailbox, enum sb_agent_command command);
bool mailbox_asked(
	const struct mailbox *mailbox); /* and mailbox_step() has not reported its end yet */

/*
 * Advances the command. at_doorbell: a thread of this process that waits at a start doorbell, or 0.
 * True when it has been carried out; then no remote call is under way any more.
 */
bool mailbox_step(struct mailbox *mailbox, struct tree *tree, uint64_t now_ns, pid_t at_doorbell);

/*
 * Removes the agent: issues STOP, once its current command is done. True when nothing of it can run
 * any more.
 */
bool mailbox_evict(struct mailbox *mailbox, struct tree *tree, uint64_t now_ns);

/* The agent's answer. The target can write it: texts are cut and made printable. */
struct mailbox_answer {
	int status; /* enum sb_agent_error */
	char reason[256];
	uint32_t flags, python, matched;
	uint64_t cost_ticks;
	uint64_t held_ticks[2]; /* the longest hold of the GIL before STOP, and in STOP */
	bool loaded;
};
void mailbox_answer(const struct mailbox *mailbox, struct mailbox_answer *out);

/* The agent's interpreter has ended; another may have started. Returns true once for each. */
bool mailbox_ended(struct mailbox *mailbox);

/*
 * Another tool removed the agent from the chain of frame evaluation functions (3.10, 3.11): an
 * APPLY puts it back.
 */
bool mailbox_dropped(const struct mailbox *mailbox);

/* A thread is at work on a command, or a remote call for one is under way. */
bool mailbox_busy(const struct mailbox *mailbox);

/* Of one that was loaded, too: a thread is in a command, or at either end of it. */
bool mailbox_entered(const struct mailbox *mailbox);

/* The last command was carried out, by an agent that is loaded, without an error. */
bool mailbox_applied(const struct mailbox *mailbox);

/* True if no thread is in the mailbox's code or can enter it: it may be unmapped. */
bool mailbox_is_quiet(const struct mailbox *mailbox);

/* Frees the description; changes nothing in the target. */
void mailbox_free(struct mailbox *mailbox);

/* The thread of the space that waits at a start doorbell, or 0. Threads run on exit. */
pid_t mailbox_at_doorbell(struct space *space, struct tree *tree);

#endif
