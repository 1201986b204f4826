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
 * The process tree under trace: which processes and threads there are, which of them are stopped,
 * and what happened to them.
 *
 * A thread is running, stopped (by sbinject, or in an event not dispatched yet), listening (stopped
 * by job control, watched for SIGCONT) or gone. Between calls from the main loop no thread is held:
 * tree_stop() and tree_resume() come in pairs within one call of the session. Called from an
 * event's handler they leave the thread of that event stopped throughout.
 *
 * The tree treats processes and address spaces as labels: `space` belongs to the session, which
 * receives all events through struct tree_ops. A process that shares its parent's memory (vfork,
 * CLONE_VM) has the same space.
 *
 * Any function that dispatches events may end any process and any thread. A process or thread that
 * has ended leaves the lists at once, and its memory stays allocated: a pointer to it stays valid,
 * and shows the end (THREAD_GONE; proc->ended, no space, no session, no threads), until
 * tree_bury(), which only the outermost loops call.
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
	struct stop stop;	  /* while STOPPED: what it is stopped in */
	bool newborn;		  /* its first stop has not been seen yet */
	bool pinned;		  /* an event is being handled: tree_resume() leaves it stopped */
	bool interrupted;	  /* PTRACE_INTERRUPT was sent, its stop has not come */
	bool kept;		  /* in the kernel for long (D state): stops before user code */
	bool async;		  /* runs a remote call by itself; see remote_async() */
	bool restart_lost;	  /* ... and a stop in it overwrote the kernel's restart block */
	uint64_t held_since;	  /* ns, while held by tree_stop() */
	uint64_t thread_pointer;  /* for the session's thread filter; 0: not read yet */
	struct thread *next;	  /* of the process */
	struct thread *hash_next; /* once it is gone: the next one for tree_bury() */
};

struct proc {
	pid_t pid;
	pid_t parent;
	struct space *space; /* the session's; NULL before the session was notified */
	struct thread *threads;
	unsigned int generation; /* execs seen */
	bool traced;
	bool ended;
	bool announced;	    /* the session was notified of it */
	pid_t vfork_parent; /* shares memory with this process, which waits; 0: none */
	struct proc *next;
	struct proc *buried; /* once it is gone: the next one for tree_bury() */
	void *session;	     /* the session's own record */
};

/* Called with the thread or process concerned stopped; the tree resumes it afterwards. */
struct tree_ops {
	/*
	 * shares_memory: it already has its parent's space, and the callback takes a reference to
	 * it. Called at the parent's event, which is before the child's first stop.
	 */
	void (*forked)(void *ctx, struct proc *child, struct proc *parent, bool shares_memory);
	void (*execed)(void *ctx, struct proc *proc);
	void (*ended)(void *ctx, struct proc *proc, int status); /* no thread is stopped */
	void (*thread_new)(void *ctx, struct thread *thread);
	/* A SIGTRAP is about to be delivered: true if it was a hook's and has been handled. */
	bool (*trapped)(void *ctx, struct thread *thread);
	/* The same of a SIGSEGV or SIGBUS, and code whose faults are expected. */
	bool (*faulted)(void *ctx, struct thread *thread);
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
	struct orphan *orphans; /* stops of children whose parent's event has not arrived yet */
	size_t n_orphans;
	bool stays_awake;	  /* there is more than one processor to run on */
	uint64_t longest_hold_ns; /* since it was last reset */
	struct thread *hash[TREE_BUCKETS];
};

void tree_init(struct tree *tree, const struct tree_ops *ops, void *ctx);
void tree_free(struct tree *tree); /* frees everything; detaches nothing */

/*
 * Takes a process and all its threads under trace, running; not its children. space: the value for
 * proc->space. Errors: SB_ENOPROC, SB_EPERM, SB_ETRACED; then nothing stays seized.
 */
int tree_add(struct tree *tree, pid_t pid, pid_t parent, struct proc **out, struct sb_err *err);

/* Seizes a process again after tree_release(). */
int tree_retake(struct tree *tree, struct proc *proc, struct sb_err *err);

struct proc *tree_proc(const struct tree *tree, pid_t pid);
struct thread *tree_thread(const struct tree *tree, pid_t tid);
/*
 * Walks the threads of a space by id, so that threads may start and end meanwhile: returns the one
 * after `after` (0: the first), NULL at the end.
 */
struct thread *tree_next_thread(const struct tree *tree, const struct space *space, pid_t after);
size_t tree_count_threads(const struct tree *tree, const struct space *space);

/*
 * Dispatches pending events; never blocks. Call it after each SIGCHLD. Threads that stop all the
 * time, at an int3 or by signals, could keep it busy for ever: it returns true when it left some
 * events for the next call, which must follow soon; each thread has had its turn then.
 */
bool tree_dispatch(struct tree *tree);

/*
 * As tree_dispatch(), for a caller in the middle of work of its own: passes over the stops of
 * threads that are held, and over those for which later() is true. They are dispatched at the next
 * tree_dispatch(). True: there was something to serve.
 */
typedef bool tree_later_fn(void *ctx, const struct thread *thread, const struct stop *stop);
bool tree_serve(struct tree *tree, tree_later_fn *later);

/* Handles children whose parent was killed before its event arrived. Call it at intervals. */
void tree_settle(struct tree *tree);

/*
 * Stops every thread of every process in a space. On return each is stopped, or sleeps in the
 * kernel and will stop before it runs user code again (thread->kept). SB_ETARGET if one
 * cannot be stopped within a second: then all run again.
 */
int tree_stop(struct tree *tree, struct space *space, struct sb_err *err);
/* As tree_stop(), with a few attempts; between them all threads run. */
int tree_stop_patiently(struct tree *tree, struct space *space, struct sb_err *err);
void tree_resume(struct tree *tree, struct space *space);
/*
 * For a space whose threads are all deep in the kernel (thread->kept): waits until one has come out
 * or the timeout ends. That thread is then stopped, or its end or its exec is dispatched. An exec
 * waits until the tracer has seen the end of all other threads: a caller that does not look waits
 * for ever.
 */
void tree_await_kept(struct tree *tree, const struct space *space, unsigned int timeout_us);

/* The stopped thread is in the middle of a fork or exec that has not been dispatched. */
bool tree_event_pending(const struct thread *thread);

/*
 * Where the thread is in the event of a thread that it has started: runs it to the end of that
 * call, where it is stopped again before it runs any code of its own. The new thread stays in its
 * birth stop until the next dispatch. False: it was another event, or the stop has not come.
 */
bool tree_pass_clone(struct tree *tree, struct thread *thread, unsigned int timeout_us);

/* That event copies its memory to another process, or takes its memory away. */
bool tree_forks(const struct thread *thread);

/*
 * Stops one thread, for a remote call. False: it is gone (with its process if it was the last), or
 * does not stop within timeout_us.
 */
bool tree_stop_thread(struct tree *tree, struct thread *thread, unsigned int timeout_us);
void tree_resume_thread(struct tree *tree, struct thread *thread);

/*
 * As tree_resume_thread(), but a thread that job control has stopped runs, too, for as long as its
 * tracer lets it: its next stop reports STOP_GROUP again, and its process counts as stopped
 * throughout.
 */
void tree_run_thread(struct tree *tree, struct thread *thread);

/*
 * Releases a process untraced. Its threads may be stopped or running; they run afterwards (or stay
 * stopped by job control). A thread that is deep in the kernel is released last, after at most a
 * second of waiting: if it is still there, the kernel releases it when the tracer ends.
 */
void tree_release(struct tree *tree, struct proc *proc);

/* Removes a process from the tree; it must be released or gone. A second call does nothing. */
void tree_forget(struct tree *tree, struct proc *proc);

/*
 * Frees the memory of ended and forgotten processes and threads. Only where no caller holds a
 * pointer to a process or a thread, nor walks their lists: between two steps of a session.
 */
void tree_bury(struct tree *tree);

#endif
