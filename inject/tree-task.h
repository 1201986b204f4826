/* SPDX-License-Identifier: MIT */
#ifndef SB_TREE_TASK_H
#define SB_TREE_TASK_H

#include "tree.h"

/* State of a task from /proc, for tree*.c. */
pid_t task_tgid(pid_t tid); /* 0: gone */
/* Is it a living thread of that process? One system call, where task_tgid() takes 20 us. */
bool task_is_thread(pid_t pid, pid_t tid);
pid_t task_parent(pid_t tid); /* 0: gone */
/* Real, effective, saved and filesystem ids. */
struct task_ids {
	uid_t uid[4], gid[4];
};
bool task_read_ids(pid_t pid, struct task_ids *ids); /* false: gone */
uint64_t task_start(pid_t pid);			     /* start time, in clock ticks; 0: gone */
/* Are all its user ids (real, effective, saved, filesystem) this one? False also if it is gone. */
bool task_is_user(pid_t pid, uid_t uid);
bool task_has_shadow_stack(pid_t pid);	 /* the processor checks its returns */
bool task_sleeps(pid_t tid);		 /* interruptible sleep */
bool task_in_kernel(pid_t tid);		 /* uninterruptible sleep, or dead */
uint64_t task_run_ns(pid_t tid);	 /* CPU time used; some milliseconds late */
bool task_is_dead(pid_t pid, pid_t tid); /* zombie or gone */
bool task_ended(pid_t pid);		 /* every thread: a leader may end before the others */
/*
 * For a thread in uninterruptible sleep: its user pc, and whether it is in a system call or a
 * fault.
 */
bool task_waits(pid_t tid, uint64_t *pc, bool *in_call);
bool task_frozen(pid_t pid);	   /* by its cgroup */
bool task_locks_memory(pid_t pid); /* some of it, or all that it maps (mlockall) */
/* The strictest mode among its threads: 0, 2 a filter, 1 strict. */
int task_any_seccomp(pid_t pid);
bool task_seccomp(pid_t tid); /* a filter or strict mode is on */
/*
 * Why a tracer's breakpoints would change the process's own signal state; NULL if they would not. A
 * trap while SIGTRAP is blocked or ignored resets its handler and unblocks it. A thread that blocks
 * all signals is no reason: see task_blocks_all().
 */
const char *task_trap_unfit(pid_t pid);
/* The signal was sent to this thread, and is not delivered yet. */
bool task_signal_waits(pid_t tid, int sig);
/* A signal that is neither blocked nor ignored is pending, or the thread is gone. */
bool task_signal_due(pid_t tid);
/* The kernel would discard this signal to the thread if the thread were not traced. */
bool task_ignores(pid_t tid, int sig);
/*
 * The mask blocks every signal except SIGTRAP, which a trap has unblocked, the signals that cannot
 * be blocked, and libc's two.
 */
bool task_blocks_all(uint64_t mask);
pid_t task_tracer(pid_t tid);	/* 0: none */
bool task_is_tracer(pid_t pid); /* a live tracer of sbinject's */
bool task_is_ours(pid_t tid);	/* traced by this thread already */
bool task_shares_memory(pid_t a, pid_t b, bool guess);
/*
 * A few system calls return EINTR at any stop, even without a signal (epoll_wait, sigtimedwait,
 * semtimedop). Before a thread leaves a stop of sbinject's making, or one for a signal that it
 * ignores, such a call is wound back to begin again.
 */
void task_unnoticed(pid_t tid);

/*
 * A thread in a remote call has stopped: notes whether it was in a call that needs the kernel's
 * restart block to continue.
 */
void task_note_restart(struct thread *thread);
void task_signal_unnoticed(pid_t tid, int sig);
/* A soft limit from /proc/PID/limits, by its name there; the largest number where there is none. */
uint64_t task_limit(pid_t pid, const char *name);
int task_seize_error(pid_t pid, pid_t tid, struct sb_err *err); /* why PTRACE_SEIZE failed */
/* The same, where the reason is not another tracer; also for reading its memory. */
int task_no_permission(pid_t pid, struct sb_err *err);

/*
 * Shared by the files of the tree: tree-list.c, tree-stop.c, tree-event.c, tree-restart.c, tree.c.
 */
struct thread *tree_thread_new(struct tree *tree, struct proc *proc, pid_t tid);
void tree_thread_free(struct tree *tree, struct thread *thread);
struct proc *tree_proc_new(struct tree *tree, pid_t pid, pid_t parent);
void tree_free_threads(struct tree *tree, struct proc *proc);
/* Its hold has ended: records the longest hold. */
void tree_note_hold(struct tree *tree, struct thread *thread);
/* False: it did not stop within the timeout, or cannot be interrupted. */
bool tree_await_stop(struct thread *thread, unsigned int timeout_us);
bool tree_interrupt(struct thread *thread);
void tree_handle(struct tree *tree, struct thread *thread, const struct stop *stop);

#endif
