/* SPDX-License-Identifier: MIT */
/*
 * kinds MODE: signals of one kind by the thousand (the table at the end), each of which must
 * arrive once, in order, with what was sent along. kinds_fn() is called by the handlers and
 * beside them, until SIGTERM.
 */
#include <errno.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "victim.h"

uint64_t kinds_fn(uint64_t x);

static uint64_t calls, errors, sent;
static volatile uint64_t got;

VICTIM_HOOKED uint64_t kinds_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 19 + 10;
	VICTIM_OPAQUE(x);
	return x;
}

static void note(bool good, const char *what)
{
	static const char nl = '\n';

	if (good)
		return;
	if (__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED) < 5 &&
	    (write(2, what, strlen(what)) < 0 || write(2, &nl, 1) < 0))
		abort();
}

static void call(void)
{
	uint64_t i = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);

	note(kinds_fn(i) == i * 19 + 10, "a wrong result");
}

static void *caller(void *arg)
{
	while (!victim_stop) {
		call();
		victim_sleep_ns(50000);
	}
	return arg;
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigaction(sig, &sa, NULL);
}

static void block(int sig, int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(how, &set, NULL);
}

/* Breakpoints of the program's own, as a debugger inside it would plant them. */
static void on_breakpoint(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	note(si->si_code == SI_KERNEL, "a breakpoint's si_code");
	got++;
	call();
}

static void kind_breakpoint(void)
{
	handle(SIGTRAP, on_breakpoint, 0);
	while (!victim_stop) {
		sent++;
		__asm__ volatile("int3" ::: "memory");
		note(got == sent, "a breakpoint without its handler");
		call();
		victim_sleep_ns(100000);
	}
}

/* Single steps: the same instructions make the same number of traps every time. */
static volatile uint64_t steps;

static void on_step(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	note(si->si_code == TRAP_TRACE, "a step's si_code");
	steps++;
}

static void kind_step(void)
{
	uint64_t first = 0;

	handle(SIGTRAP, on_step, 0);
	while (!victim_stop) {
		steps = 0;
		__asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
				 "nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\t"
				 "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp" ::
					 : "memory", "cc");
		if (!first)
			first = steps;
		note(steps == first && steps > 8, "steps lost or gained");
		call();
	}
}

/* SIGTRAP blocked, sent and taken synchronously. */
static void kind_blocked(void)
{
	sigset_t set;
	siginfo_t si;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	block(SIGTRAP, SIG_BLOCK);
	while (!victim_stop) {
		struct timespec none = { 0, 0 }, now = { 0, 300000 };
		union sigval v = { .sival_int = (int)++sent };

		note(sigqueue(getpid(), SIGTRAP, v) == 0, "sigqueue");
		call();
		nanosleep(&now, NULL);
		note(sigtimedwait(&set, &si, &none) == SIGTRAP && si.si_code == SI_QUEUE &&
			     si.si_value.sival_int == (int)sent,
		     "a blocked SIGTRAP");
	}
}

/* SIGTRAP ignored: sent, it must stay without effect. */
static void kind_ignored(void)
{
	signal(SIGTRAP, SIG_IGN);
	while (!victim_stop) {
		kill(getpid(), SIGTRAP);
		call();
		victim_sleep_ns(100000);
	}
}

/* Real-time signals: queued, numbered. */
static void on_queued(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	note(si->si_code == SI_QUEUE && si->si_pid == getpid(), "what came with a signal");
	note((uint64_t)si->si_value.sival_int == got + 1, "a real-time signal out of turn");
	got = (uint64_t)si->si_value.sival_int;
	call();
}

static void *queue(void *arg)
{
	block(SIGRTMIN + 2, SIG_BLOCK);
	while (!victim_stop) {
		for (int i = 0; i < 20; i++) {
			union sigval v = { .sival_int = (int)(sent + 1) };

			if (sigqueue(getpid(), SIGRTMIN + 2, v) == 0)
				sent++;
			else
				note(errno == EAGAIN, "sigqueue");
		}
		victim_sleep_ns(1000000);
	}
	return arg;
}

static void kind_queued(void)
{
	pthread_t t;

	handle(SIGRTMIN + 2, on_queued, SA_RESTART);
	if (pthread_create(&t, NULL, queue, NULL))
		exit(2);
	caller(NULL);
	pthread_join(t, NULL);
	victim_sleep_ns(20000000);
	note(got == sent, "real-time signals were lost");
}

/* Children end: SIGCHLD with who and how. */
static volatile pid_t child;
static volatile int reaped;

static void on_child(int sig, siginfo_t *si, void *uc)
{
	int status;

	(void)sig;
	(void)uc;
	note(si->si_code == CLD_EXITED && si->si_status == 3, "SIGCHLD's message");
	note(waitpid(si->si_pid, &status, WNOHANG) == si->si_pid && WEXITSTATUS(status) == 3,
	     "the child that SIGCHLD names");
	reaped++;
	call();
}

static void kind_child(void)
{
	sigset_t chld, old;

	handle(SIGCHLD, on_child, SA_RESTART | SA_NOCLDSTOP);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	while (!victim_stop) {
		sigprocmask(SIG_BLOCK, &chld, &old);
		reaped = 0;
		child = fork();
		if (child == 0)
			_exit(3);
		while (!reaped)
			sigsuspend(&old);
		sigprocmask(SIG_SETMASK, &old, NULL);
		note(reaped == 1, "one SIGCHLD a child");
	}
}

/* A shell with a job: stopped and continued, each seen once. */
static void kind_job(void)
{
	struct sigaction sa = { .sa_handler = victim_on_term, .sa_flags = SA_RESTART };
	int status = 0;
	pid_t job = fork();

	sigaction(SIGTERM, &sa, NULL); /* its waits go on */
	if (job == 0) {
		signal(SIGTERM, SIG_DFL);
		setpgid(0, 0);
		for (;;)
			call();
	}
	setpgid(job, job); /* the first of the two does it: an orphaned group ignores SIGTSTP */
	for (int i = 0; !victim_stop; i++) {
		int sig = i % 3 == 0 ? SIGTSTP : i % 3 == 1 ? SIGSTOP : SIGTTIN;

		victim_sleep_ns(1000000);
		kill(job, sig);
		note(waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status) &&
			     WSTOPSIG(status) == sig,
		     "a stopped job");
		victim_sleep_ns(2000000);
		note(waitpid(job, &status, WUNTRACED | WCONTINUED | WNOHANG) == 0,
		     "a stopped job has news");
		kill(job, SIGCONT);
		note(waitpid(job, &status, WCONTINUED) == job && WIFCONTINUED(status),
		     "a continued job");
		call();
	}
	kill(job, SIGKILL);
	waitpid(job, &status, 0);
}

/* Faults that the program handles, as a garbage collector does. */
static char *barrier;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	note(si->si_code == SEGV_ACCERR && (char *)si->si_addr == barrier + 40,
	     "a fault's address");
	mprotect(barrier, 4096, PROT_READ | PROT_WRITE);
	got++;
	call();
}

static void kind_fault(void)
{
	barrier = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	handle(SIGSEGV, on_fault, 0);
	while (!victim_stop) {
		mprotect(barrier, 4096, PROT_NONE);
		sent++;
		*(volatile char *)(barrier + 40) = (char)sent;
		note(got == sent && barrier[40] == (char)sent, "a fault");
		call();
	}
}

/*
 * A timer of 1 kHz over a loop that keeps known values in every register it can; the handler
 * takes its time on an alternate stack and overwrites what a handler may.
 */
static void on_tick(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	note(si->si_code == SI_TIMER, "a timer's si_code");
	got++;
	call();
	__asm__ volatile("pxor %%xmm0, %%xmm0\n\tpxor %%xmm7, %%xmm7\n\tpxor %%xmm15, %%xmm15" ::
				 : "xmm0", "xmm7", "xmm15");
}

/* Registers that a call leaves alone, over a call; returns how many came back wrong. */
static uint64_t kept_registers(uint64_t seed)
{
	uint64_t bad;

	__asm__ volatile("mov %1, %%rbx\n\tlea 1(%1), %%r12\n\tlea 2(%1), %%r13\n\t"
			 "lea 3(%1), %%r14\n\tlea 4(%1), %%r15\n\t"
			 "movq %1, %%xmm0\n\tmovq %%r12, %%xmm7\n\tmovq %%r15, %%xmm15\n\t"
			 "mov $300, %%ecx\n1:\tpause\n\tdec %%ecx\n\tjnz 1b\n\t"
			 "xor %0, %0\n\tmov %1, %%rax\n\t"
			 "sub %%rax, %%rbx\n\tor %%rbx, %0\n\tsub %%rax, %%r12\n\tdec %%r12\n\t"
			 "or %%r12, %0\n\tsub %%rax, %%r13\n\tsub $2, %%r13\n\tor %%r13, %0\n\t"
			 "movq %%xmm0, %%rcx\n\tsub %%rax, %%rcx\n\tor %%rcx, %0\n\t"
			 "movq %%xmm15, %%rcx\n\tsub %%r15, %%rcx\n\tor %%rcx, %0\n\t"
			 : "=&r"(bad)
			 : "r"(seed)
			 : "rax", "rbx", "rcx", "r12", "r13", "r14", "r15", "xmm0", "xmm7", "xmm15",
			   "cc", "memory");
	return bad;
}

static void kind_timer(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3 };
	struct itimerspec ms = { { 0, 1000000 }, { 0, 1000000 } };
	static char stack[65536];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	timer_t timer;

	sigaltstack(&ss, NULL);
	handle(SIGRTMIN + 3, on_tick, SA_RESTART | SA_ONSTACK);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &ms, NULL))
		exit(2);
	while (!victim_stop) {
		note(kept_registers(sent++) == 0, "registers over a timer's signal");
		call();
	}
	timer_delete(timer);
	note(got > 10, "the timer does not tick");
}

static const struct kind {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{ "breakpoint", kind_breakpoint },
	{ "step", kind_step },
	{ "blocked", kind_blocked },
	{ "ignored", kind_ignored },
	{ "queued", kind_queued },
	{ "child", kind_child },
	{ "job", kind_job },
	{ "fault", kind_fault },
	{ "timer", kind_timer },
};

int main(int argc, char **argv)
{
	victim_catch_term();
	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		victim_ready();
		kinds[i].run();
		victim_calls("kinds_fn", calls);
		return victim_done(errors == 0);
	}
	return 2;
}
