/* SPDX-License-Identifier: MIT */
#ifndef SB_TREE_H
#define SB_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "ptrace.h"
#include "src/base/err.h"

/*
 * The process tree under trace: which processes and threads there are, which of them are
 * stopped, and what happened to them.
 *
 * A thread is running, stopped (by us, or in an event not dispatched yet), listening (stopped
 * by job control, watched for SIGCONT) or gone. Between calls from the main loop nothing is
 * held: tree_stop() and tree_resume() come in pairs within one call of the session. Called from
 * an event's handler they leave the thread of that event stopped throughout.
 *
 * The tree knows processes and address spaces only as labels: `space` belongs to the session,
 * which hears of everything through struct tree_ops. A process that shares its parent's memory
 * (vfork, CLONE_VM) has the same space.
 *
 * Whatever dispatches events may end any process and any thread. What has ended leaves the lists at
 * once, and its memory stays: a pointer to it stays good, and says so (THREAD_GONE; proc->ended, no
 * space, no session, no threads), until tree_bury(), which only the outermost loops call.
 *
 * If the tracer dies the kernel lets every thread run on; nothing here needs cleaning up.
 */
struct space;
struct proc;

enum thread_state { THREAD_RUNNING, THREAD_STOPPED, THREAD_LISTENING, THREAD_GONE };

struct thread {
	pid_t tid;
	struct proc *proc;
	enum thread_state state;
	struct stop stop;	 /* while STOPPED: what it is stopped in */
	bool newborn;		 /* its first stop has not been seen yet */
	bool pinned;		 /* an event is being handled: tree_resume() leaves it stopped */
	bool interrupted;	 /* PTRACE_INTERRUPT was sent, its stop has not come */
	bool kept;		 /* in the kernel for long (D state): stops before user code */
	bool lent;		 /* runs a call of ours by itself; see remote_lend() */
	bool restart_lost;	 /* ... and a stop in it took the kernel's note of how to restart */
	uint64_t held_since;	 /* ns, while held by tree_stop() */
	uint64_t thread_pointer; /* for the session's thread filter; 0: not read yet */
	struct thread *next;	 /* of the process */
	struct thread *hash_next; /* once it is gone: the next to be buried */
};

struct proc {
	pid_t pid;
	pid_t parent;
	struct space *space; /* the session's; NULL before it was told */
	struct thread *threads;
	unsigned int generation; /* execs seen */
	bool traced;
	bool ended;
	bool told;	    /* the session knows it */
	pid_t vfork_parent; /* shares memory with it, which waits; 0: none */
	struct proc *next;
	struct proc *buried; /* once it is gone: the next to be buried */
	void *session;	     /* the session's own record */
};

/* Called with the thread or process concerned stopped; it is resumed afterwards. */
struct tree_ops {
	/* shares_memory: it has its parent's space already, of which this is to take a reference;
	 * called when the parent says so, which is before the child's first stop. */
	void (*forked)(void *ctx, struct proc *child, struct proc *parent, bool shares_memory);
	void (*execed)(void *ctx, struct proc *proc);
	void (*ended)(void *ctx, struct proc *proc, int status); /* nobody is stopped */
	void (*thread_new)(void *ctx, struct thread *thread);
	/* A SIGTRAP is about to be delivered: true if it was a hook's and is dealt with. */
	bool (*trapped)(void *ctx, struct thread *thread);
};

enum { TREE_BUCKETS = 4096 };

struct orphan {
	struct stop stop;
	uint64_t since_ns;
};

struct tree {
	const struct tree_ops *ops;
	void *ctx;
	struct proc *procs;
	struct proc *gone_procs; /* until tree_bury() */
	struct thread *gone_threads;
	struct orphan *orphans; /* stops of children whose parent's event is still to come */
	size_t n_orphans;
	uint64_t longest_hold_ns; /* since it was last reset */
	struct thread *hash[TREE_BUCKETS];
};

void tree_init(struct tree *tree, const struct tree_ops *ops, void *ctx);
void tree_free(struct tree *tree); /* forgets everything; detaches nothing */

/*
 * Takes a process and all its threads under trace, running. Not its children. space: what
 * proc->space shall be. Errors: SB_ENOPROC, SB_EPERM, SB_ETRACED; then nothing stays seized.
 */
int tree_add(struct tree *tree, pid_t pid, pid_t parent, struct proc **out, struct sb_err *err);

/* Seizes again a process that tree_release() let go. */
int tree_retake(struct tree *tree, struct proc *proc, struct sb_err *err);

struct proc *tree_proc(const struct tree *tree, pid_t pid);
struct thread *tree_thread(const struct tree *tree, pid_t tid);
/* Walks the threads of a space by id, so that they may come and go meanwhile: the one after
 * `after` (0: the first), NULL at the end. */
struct thread *tree_next_thread(const struct tree *tree, const struct space *space, pid_t after);
size_t tree_count_threads(const struct tree *tree, const struct space *space);

/*
 * Dispatches the events that wait; never blocks. Call whenever SIGCHLD came. Threads that stop all
 * the time, at an int3 or by signals, could keep it busy for ever: true when it left some for the
 * next call, which is to follow soon; each thread has had its turn then.
 */
bool tree_dispatch(struct tree *tree);

/* Finds a place for children whose parent was killed before its event came; now and then. */
void tree_settle(struct tree *tree);

/*
 * Stops every thread of every process in a space. On return each is stopped, or sleeps in the
 * kernel and will stop before it runs user code again (thread->kept). SB_ETARGET if one
 * cannot be stopped within a second: then all run again.
 */
int tree_stop(struct tree *tree, struct space *space, struct sb_err *err);
/* As tree_stop(), a few times: between them everybody runs. */
int tree_stop_patiently(struct tree *tree, struct space *space, struct sb_err *err);
void tree_resume(struct tree *tree, struct space *space);
/*
 * Where all threads are deep in the kernel (thread->kept): waits a while until one has come out. It
 * is stopped then, or its end or its exec is dispatched. An exec waits for the end of all other
 * threads to be seen, so not to look is to wait for ever.
 */
void tree_await_kept(struct tree *tree, const struct space *space, unsigned int timeout_us);

/* A stopped thread is in the middle of a fork or exec that has not been dispatched. */
bool tree_event_pending(const struct thread *thread);

/*
 * Where it is in the event of a thread that it has started: on to the end of that call, where it is
 * stopped again before it runs any code of its own. The new thread stays in its birth until the
 * next dispatch. False: it was another event, or the stop has not come.
 */
bool tree_pass_clone(struct tree *tree, struct thread *thread, unsigned int timeout_us);

/* That event gives someone else a copy of its memory, or takes its memory away. */
bool tree_forks(const struct thread *thread);

/* One thread; for borrowing it. False: it is gone (with its process if that was the last), or does
 * not stop within timeout_us. */
bool tree_stop_thread(struct tree *tree, struct thread *thread, unsigned int timeout_us);
void tree_resume_thread(struct tree *tree, struct thread *thread);

/* Lets a process go untraced. Its threads may be stopped or running; they run afterwards
 * (or stay stopped by job control). One that is deep in the kernel is let go last, and waited
 * for a second at most: if it is there still, the kernel lets it go when the tracer ends. */
void tree_release(struct tree *tree, struct proc *proc);

/* Forgets a process; it must be released or gone. A second time does nothing. */
void tree_forget(struct tree *tree, struct proc *proc);

/* Frees the memory of what has ended or was forgotten. Only where nobody holds a pointer to a
 * process or a thread, nor walks their lists: between two steps of a session. */
void tree_bury(struct tree *tree);

#endif
