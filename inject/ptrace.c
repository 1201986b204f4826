/* SPDX-License-Identifier: MIT */
#include "ptrace.h"

#include <elf.h> /* NT_PRSTATUS */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include "clock.h"
#include "memory.h"
#include "tree-task.h"
#include "src/base/caps.h"

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif
#define GET_USER_DISPATCH   0x4211 /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */
#define OPT_SUSPEND_SECCOMP (1 << 21)
#define SEIZE_US	    3000

static const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			    PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;

static int result(long ret)
{
	return ret < 0 ? -errno : 0;
}

/*
 * PTRACE_SEIZE waits for an exec in progress, and an exec waits until the tracer has seen the end
 * of each thread that it traces: with some threads of a process seized and another in exec, both
 * wait for ever. The kernel restarts the call after any signal handler, so the handler leaves by
 * siglongjmp().
 */
static sigjmp_buf seize_given_up;
static volatile sig_atomic_t seizing;

static void on_alarm(int sig)
{
	(void)sig;
	if (seizing)
		siglongjmp(seize_given_up, 1);
}

static void alarm_us(long us)
{
	struct itimerval timer = { .it_value = { .tv_usec = us },
				   .it_interval = { .tv_usec = us } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

int pt_seize(pid_t tid)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	static volatile int ret;
	bool raised = caps_raise();
	sigset_t set;

	ret = -EBUSY;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigaction(SIGALRM, &sa, NULL);
	if (!sigsetjmp(seize_given_up, 1)) {
		seizing = 1;
		alarm_us(SEIZE_US);
		ret = result(ptrace(PTRACE_SEIZE, tid, 0, options));
	}
	seizing = 0;
	alarm_us(0);
	caps_lower(raised);
	/* The alarm may have fired after the call was over. */
	return ret == -EBUSY && task_is_ours(tid) ? 0 : ret;
}

static struct {
	pid_t pid; /* 0: none */
	bool ended;
	int status;
} own_child;

void pt_child(pid_t pid)
{
	own_child.pid = pid;
	own_child.ended = false;
}

bool pt_child_ended(int *status)
{
	*status = own_child.status;
	return own_child.ended;
}

static bool is_end(const siginfo_t *si)
{
	return si->si_code == CLD_EXITED || si->si_code == CLD_KILLED || si->si_code == CLD_DUMPED;
}

static int end_status(const siginfo_t *si)
{
	return si->si_code == CLD_EXITED ? si->si_status << 8 : si->si_status;
}

/* Takes the event of one thread; the end of our own child has another one that waits for it. */
static void take(pid_t tid, int flags)
{
	siginfo_t si = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)tid, &si, flags) < 0 || !own_child.pid ||
	    si.si_pid != own_child.pid || !is_end(&si))
		return;
	own_child.ended = true;
	own_child.status = end_status(&si);
}

void pt_reap(pid_t tid)
{
	take(tid, WEXITED | WNOHANG | __WALL | __WNOTHREAD);
}

int pt_interrupt(pid_t tid)
{
	return result(ptrace(PTRACE_INTERRUPT, tid, 0, 0));
}

int pt_cont(pid_t tid, int sig)
{
	return result(ptrace(PTRACE_CONT, tid, 0, (long)sig));
}

int pt_syscall(pid_t tid)
{
	return result(ptrace(PTRACE_SYSCALL, tid, 0, 0));
}

int pt_listen(pid_t tid)
{
	return result(ptrace(PTRACE_LISTEN, tid, 0, 0));
}

int pt_detach(pid_t tid, int sig)
{
	return result(ptrace(PTRACE_DETACH, tid, 0, (long)sig));
}

int pt_get_regs(pid_t tid, struct arch_regs *regs)
{
	struct iovec iov = { &regs->gp, sizeof(regs->gp) };

	return result(ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov));
}

int pt_set_regs(pid_t tid, const struct arch_regs *regs)
{
	struct iovec iov = { (void *)(uintptr_t)&regs->gp, sizeof(regs->gp) };

	return result(ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov));
}

int pt_get_sigmask(pid_t tid, uint64_t *mask)
{
	return result(ptrace(PTRACE_GETSIGMASK, tid, sizeof(*mask), mask));
}

int pt_set_sigmask(pid_t tid, uint64_t mask)
{
	return result(ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask));
}

int pt_get_xstate(pid_t tid, void *buf, size_t *len)
{
	struct iovec iov = { buf, *len };
	int ret = result(ptrace(PTRACE_GETREGSET, tid, arch->xstate_note, &iov));

	*len = iov.iov_len;
	return ret;
}

int pt_suspend_seccomp(pid_t tid, bool suspend)
{
	return result(
		ptrace(PTRACE_SETOPTIONS, tid, 0, options | (suspend ? OPT_SUSPEND_SECCOMP : 0)));
}

int pt_own(pid_t tid)
{
	return result(ptrace(PTRACE_SETOPTIONS, tid, 0,
			     (long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)));
}

bool pt_fault_addr(pid_t tid, uint64_t *addr)
{
	siginfo_t si;

	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &si) < 0)
		return false;
	*addr = (uint64_t)(uintptr_t)si.si_addr;
	return true;
}

bool pt_rseq(pid_t tid, struct pt_rseq_area *area)
{
	struct {
		uint64_t abi;
		uint32_t size, signature, flags, pad;
	} conf;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(conf), &conf) < 0 || !conf.abi)
		return false;
	*area = (struct pt_rseq_area){ conf.abi, conf.size, conf.signature };
	return true;
}

bool pt_in_rseq(pid_t tid, const struct memory *mem, uint64_t pc)
{
	struct pt_rseq_area area;
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} cs;
	uint64_t at = 0;

	if (!pt_rseq(tid, &area))
		return false;
	if (memory_peek(mem, area.addr + 8, &at, 8) != 8 || !at)
		return false;
	return memory_peek(mem, at, &cs, sizeof(cs)) == sizeof(cs) && pc - cs.start < cs.length;
}

bool pt_dispatches_calls(pid_t tid, uint64_t *selector)
{
	struct {
		uint64_t mode, selector, offset, len;
	} conf;

	if (ptrace(GET_USER_DISPATCH, tid, sizeof(conf), &conf) < 0 || !conf.mode)
		return false;
	*selector = conf.selector;
	return true;
}

static enum stop_kind kind_of(int code)
{
	static const struct {
		int event;
		enum stop_kind kind;
	} table[] = {
		{ PTRACE_EVENT_FORK, STOP_FORK },
		{ PTRACE_EVENT_VFORK, STOP_VFORK },
		{ PTRACE_EVENT_CLONE, STOP_CLONE },
		{ PTRACE_EVENT_EXEC, STOP_EXEC },
	};
	int event = code >> 8;

	if (event == PTRACE_EVENT_STOP)
		return (code & 0x7f) == SIGTRAP ? STOP_TRAP : STOP_GROUP;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].event == event)
			return table[i].kind;
	return code == (SIGTRAP | 0x80) ? STOP_SYSCALL : STOP_SIGNAL;
}

static void fill_stop(struct stop *stop, const siginfo_t *si)
{
	memset(stop, 0, sizeof(*stop));
	stop->tid = si->si_pid;
	if (is_end(si)) {
		stop->kind = STOP_GONE;
		stop->status = end_status(si);
		return;
	}
	stop->kind = kind_of(si->si_status);
	stop->sig = si->si_status & 0x7f;
	if (stop->kind == STOP_FORK || stop->kind == STOP_VFORK || stop->kind == STOP_CLONE ||
	    stop->kind == STOP_EXEC)
		ptrace(PTRACE_GETEVENTMSG, stop->tid, 0, &stop->message);
}

/* __WNOTHREAD: a thread beside this one has children of its own (session/inject/aside.c). */
enum { WAIT_FLAGS = WEXITED | WSTOPPED | WNOHANG | __WALL | __WNOTHREAD };

/*
 * A child that is not traced, as the reader of files (elf/reader.h), was stopped by a signal. That
 * is nothing to answer, and left where it is it would be seen again and again, before all threads.
 */
static bool take_untraced(const siginfo_t *si)
{
	if (si->si_code != CLD_STOPPED)
		return false;
	take(si->si_pid, WSTOPPED | WNOHANG | __WALL | __WNOTHREAD);
	return true;
}

bool pt_peek(pid_t tid, struct stop *stop)
{
	siginfo_t si;

	do {
		si.si_pid = 0;
		if (waitid(tid < 0 ? P_ALL : P_PID, tid < 0 ? 0 : (id_t)tid, &si,
			   WAIT_FLAGS | WNOWAIT) < 0 ||
		    !si.si_pid)
			return false;
	} while (take_untraced(&si));
	fill_stop(stop, &si);
	return true;
}

static bool look(pid_t tid, struct stop *stop)
{
	if (!pt_peek(tid, stop))
		return false;
	if (stop->kind != STOP_SIGNAL)
		take(stop->tid, WAIT_FLAGS);
	return true;
}

bool pt_wait(pid_t tid, struct stop *stop, unsigned int timeout_us)
{
	uint64_t end = clock_ns() + timeout_us * 1000ull, now;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	while (!look(tid, stop)) {
		struct timespec left;

		now = clock_ns();
		if (now >= end)
			return false;
		/* Signals of several stops merge into one: never sleep long on it. */
		left.tv_sec = 0;
		left.tv_nsec = end - now > 2000000 ? 2000000 : (long)(end - now);
		sigtimedwait(&chld, NULL, &left);
	}
	return true;
}
