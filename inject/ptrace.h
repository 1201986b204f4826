/* SPDX-License-Identifier: MIT */
#ifndef SB_PTRACE_H
#define SB_PTRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "inject/arch/arch.h"
#include "src/base/err.h"

/*
 * ptrace(2) and waitid(2), with their pitfalls handled. A thread of the tracer sees and moves only
 * what it has seized or forked itself.
 *
 * Stops are examined with WNOWAIT first. A signal-delivery stop is never consumed: the signal stays
 * in the thread's exit code until PTRACE_CONT replaces it, so that a tracer killed in between loses
 * no signal (the kernel then delivers it). All other stops are consumed.
 *
 * Functions return 0, or -ESRCH when the thread is gone or not stopped; other errors are -errno.
 * "Gone" is an ordinary event here, so no struct sb_err is filled.
 */
enum stop_kind {
	STOP_NONE,
	STOP_SIGNAL,  /* before delivery of a signal: sig */
	STOP_GROUP,   /* stopped by job control: sig */
	STOP_TRAP,    /* by PTRACE_INTERRUPT, or a new thread's first stop */
	STOP_FORK,    /* made a process: message is its pid */
	STOP_VFORK,   /* the same, and waits for it */
	STOP_CLONE,   /* made a thread (or a process by raw clone): message */
	STOP_EXEC,    /* runs a new image: message is its thread id before */
	STOP_SYSCALL, /* at a system call's entry or exit, when requested */
	STOP_GONE,    /* ended: status as of waitpid(2) */
};

struct stop {
	enum stop_kind kind;
	pid_t tid;
	int sig;
	int status;
	unsigned long message;
};

/*
 * From this call on births and execs are reported. -EBUSY: its process is in the middle of an exec,
 * and may wait for this tracer: see pt_reap().
 */
int pt_seize(pid_t tid);
/* Consumes the end of the thread, if it has ended, and no other event. */
void pt_reap(pid_t tid);
/*
 * pid is a child of this process that may come to be traced by it, too: then its end is one event
 * for both, and whichever wait comes first takes it. It is kept for the other: pt_child_ended()
 * tells whether a wait in here took the end, with the status as of waitpid(2). One child at a time.
 */
void pt_child(pid_t pid);
bool pt_child_ended(int *status);
int pt_interrupt(pid_t tid);
int pt_cont(pid_t tid, int sig);
int pt_syscall(pid_t tid);
int pt_listen(pid_t tid);
int pt_detach(pid_t tid, int sig);

int pt_get_regs(pid_t tid, struct arch_regs *regs);
int pt_set_regs(pid_t tid, const struct arch_regs *regs);
int pt_get_sigmask(pid_t tid, uint64_t *mask);
int pt_set_sigmask(pid_t tid, uint64_t mask);
/* Vector registers; *len in: the size of buf, out: the bytes used. */
int pt_get_xstate(pid_t tid, void *buf, size_t *len);
/* Suspends or resumes the target's seccomp filters; needs CAP_SYS_ADMIN. Stopped thread. */
int pt_suspend_seccomp(pid_t tid, bool suspend);
/*
 * For a child that called PTRACE_TRACEME: it is killed when sbinject ends, and its system-call
 * stops are distinguishable.
 */
int pt_own(pid_t tid);
/* The address that a thread stopped for SIGSEGV could not access. */
bool pt_fault_addr(pid_t tid, uint64_t *addr);

/* The area that the thread registered for restartable sequences; false: none, or unknown. */
struct pt_rseq_area {
	uint64_t addr;
	uint32_t size, signature;
};
bool pt_rseq(pid_t tid, struct pt_rseq_area *area);
/* True if the pc lies in a restartable sequence of the thread. Stopped thread. */
struct memory;
bool pt_in_rseq(pid_t tid, const struct memory *mem, uint64_t pc);

/*
 * True if the kernel sends the thread's system calls back to it (Linux 5.11; reported since 6.4)
 * unless the byte at *selector, which may be 0, forbids that. Stopped thread.
 */
bool pt_dispatches_calls(pid_t tid, uint64_t *selector);

/*
 * The next event of any thread (tid -1) or of one: true with *stop filled, false if there is none
 * within timeout_us (0: do not wait). SIGCHLD must be blocked.
 */
bool pt_wait(pid_t tid, struct stop *stop, unsigned int timeout_us);
/* The same event, which pt_wait() returns again. */
bool pt_peek(pid_t tid, struct stop *stop);

#endif
