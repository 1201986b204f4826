/* SPDX-License-Identifier: MIT */
/*
 * masks [THREADS]: each thread has a signal mask of its own and looks at it after all that it does:
 * calls of mask_call(), which calls itself, waits with other masks in ppoll() and sigtimedwait(),
 * signals of the others. One thread starts and joins short ones, which inherit its
 * mask. At its end "calls mask_call N", "sum N" of the arguments, "mask TID MASK" of each that is
 * not its own.
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include "victim.h"

enum { MOST = 16, DEPTH = 4 };

long mask_call(long n, unsigned int depth);

static pthread_t thread[MOST];
static unsigned int threads;
static uint64_t calls, sum, wrong, handled;

VICTIM_HOOKED long mask_call(long n, unsigned int depth)
{
	long deeper = 0;

	VICTIM_OPAQUE(n);
	if (depth)
		deeper = mask_call(n + 1, depth - 1);
	VICTIM_OPAQUE(deeper);
	return n + deeper;
}

/* Without the C library, which leaves out its own two signals. */
static uint64_t mask_now(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	return mask;
}

static void set_mask(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

static void look(uint64_t own, const char *where)
{
	uint64_t mask = mask_now();

	if (mask == own)
		return;
	__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	printf("mask %ld %016llx, not %016llx, after %s\n", (long)gettid(),
	       (unsigned long long)mask, (unsigned long long)own, where);
	set_mask(own);
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void call(long n)
{
	uint64_t before = 0;

	for (unsigned int k = 0; k <= DEPTH; k++)
		before += (uint64_t)n + k;
	if (mask_call(n, DEPTH) != (long)before)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&calls, DEPTH + 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sum, before, __ATOMIC_RELAXED);
}

/* Waits of a millisecond at most, with another mask than the thread's own. */
static void wait_otherwise(unsigned int way)
{
	struct timespec soon = { 0, 1000000 };
	sigset_t none, usr2;

	sigemptyset(&none);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	if (way % 3 == 0)
		ppoll(NULL, 0, &soon, &none);
	else if (way % 3 == 1)
		sigtimedwait(&usr2, NULL, &soon);
	else
		nanosleep(&soon, NULL);
}

static void *work(void *arg)
{
	unsigned int own = (unsigned int)(uintptr_t)arg;
	uint64_t mask = 1ull << (SIGRTMIN + 3 + own - 1) | 1ull << (SIGUSR2 - 1);

	set_mask(mask);
	for (unsigned int i = 0; !victim_stop; i++) {
		for (unsigned int k = 0; k < 200; k++)
			call(k);
		look(mask, "calls");
		wait_otherwise(i);
		look(mask, "a wait");
		pthread_kill(thread[i % threads], i % 2 ? SIGUSR1 : SIGUSR2);
		look(mask, "a signal");
	}
	return NULL;
}

static void *brief(void *mask)
{
	look(*(uint64_t *)mask, "its start");
	call(1);
	look(*(uint64_t *)mask, "its only call");
	return NULL;
}

static void *start_brief(void *arg)
{
	uint64_t mask = 1ull << (SIGHUP - 1);

	(void)arg;
	set_mask(mask);
	while (!victim_stop) {
		pthread_t t[2];

		for (int i = 0; i < 2; i++)
			if (pthread_create(&t[i], NULL, brief, &mask))
				abort();
		look(mask, "pthread_create()");
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	uint64_t none = mask_now();
	pthread_t starter;

	threads = argc > 1 ? (unsigned int)atoi(argv[1]) % MOST : 3;
	victim_catch_term();
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	for (unsigned int i = 0; i < threads; i++)
		thread[i] = pthread_self(); /* until it is known */
	for (unsigned int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i);
	pthread_create(&starter, NULL, start_brief, NULL);
	victim_ready();
	while (!victim_stop) {
		victim_sleep_ns(1000000);
		look(none, "a sleep");
	}
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	pthread_join(starter, NULL);
	victim_calls("mask_call", calls);
	printf("sum %llu\n", (unsigned long long)sum);
	return victim_done(!wrong && handled);
}
