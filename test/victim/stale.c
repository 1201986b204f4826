/* SPDX-License-Identifier: MIT */
/*
 * stale: calls stale_wait(), whose system call signals interrupt. The kernel leaves words of a
 * signal frame as they are, so the remains of older frames lie in them. The handler makes such
 * remains, with the same pc as its own frame; prints "handling", and waits for SIGUSR1 before it
 * returns. At its end "calls stale_wait N".
 */
#include <errno.h>
#include <sys/time.h>
#include <ucontext.h>
#include "victim.h"

#ifdef __x86_64__

long stale_wait(void);

/* pause(): the call returns into the middle of the bytes that a jump replaces. */
__asm__(".text\n.balign 16\n.globl stale_wait\n.type stale_wait, @function\nstale_wait:\n"
	"mov $34, %eax\nsyscall\ncmp $-4095, %rax\njae 1f\nret\n1: neg %eax\nret\n"
	".size stale_wait, . - stale_wait\n");

/* Of a frame's words: its registers from r8 on, and what the kernel does not write. */
enum { PC = 16, FLAGS, SELECTORS, UNWRITTEN = 24 };

static volatile sig_atomic_t go_on;

static void on_user(int sig)
{
	(void)sig;
	go_on = 1;
}

static void on_alarm(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;
	uint64_t *word = (uint64_t *)&uc->uc_mcontext;

	(void)sig;
	(void)si;
	for (int i = 0; i < 3; i++)
		word[UNWRITTEN + i] = word[PC + i];
	puts("handling");
	while (!go_on && !victim_stop)
		victim_sleep_ns(1000000);
	go_on = 0;
}

int main(void)
{
	struct sigaction alarm = { .sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO };
	struct sigaction user = { .sa_handler = on_user };
	struct itimerval timer = { .it_value = { .tv_usec = 50000 } };
	uint64_t calls = 0;
	bool ok = true;

	victim_catch_term();
	sigaction(SIGALRM, &alarm, NULL);
	sigaction(SIGUSR1, &user, NULL);
	victim_ready();
	while (!victim_stop) {
		setitimer(ITIMER_REAL, &timer, NULL);
		ok &= stale_wait() == EINTR;
		calls++;
	}
	victim_calls("stale_wait", calls);
	return victim_done(ok);
}

#else
int main(void)
{
	return 77;
}
#endif
