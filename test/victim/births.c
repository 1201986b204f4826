/* SPDX-License-Identifier: MIT */
/*
 * births: threads that start threads and vfork children without end; each of them lives for a
 * moment, which it spends in the first bytes of births_fn().
 */
#include <sys/wait.h>
#include "victim.h"

enum { MOTHERS = 2, A_MOMENT = 1000000 };

uint64_t births_fn(uint64_t x);

static uint64_t errors, seen;

/* One byte each where an instruction may be one: a thread in here stands where a jump is put. */
VICTIM_HOOKED uint64_t births_fn(uint64_t x)
{
	__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop");
	return x * 19 + 3;
}

static void wrong(void)
{
	__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
}

static void call_for_a_moment(void)
{
	for (uint64_t i = 0; i < A_MOMENT && !victim_stop; i++)
		if (births_fn(i) != i * 19 + 3)
			wrong();
	__atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
}

static void *short_life(void *arg)
{
	call_for_a_moment();
	return arg;
}

static void *mother_of_threads(void *arg)
{
	while (!victim_stop) {
		pthread_t t[2];

		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, short_life, NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
	}
	return arg;
}

static void *mother_of_vforks(void *arg)
{
	while (!victim_stop) {
		int status = 0;
		pid_t pid = vfork();

		if (pid == 0) {
			call_for_a_moment();
			_exit(7);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != 7)
			wrong();
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = victim_on_term, .sa_flags = SA_RESTART };
	pthread_t t[2 * MOTHERS];

	victim_catch_term();
	sigaction(SIGTERM, &sa, NULL);
	for (int i = 0; i < MOTHERS; i++) {
		pthread_create(&t[i], NULL, mother_of_threads, NULL);
		pthread_create(&t[MOTHERS + i], NULL, mother_of_vforks, NULL);
	}
	victim_ready();
	for (int i = 0; i < 2 * MOTHERS; i++)
		pthread_join(t[i], NULL);
	printf("lives %llu\n", (unsigned long long)seen);
	return victim_done(!errors && seen);
}
