/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: sem_post() takes 100 us of processor time before it gives the semaphore back.
 * CPython's locks are semaphores up to 3.12, so a thread that holds one holds it for long.
 */
#include <dlfcn.h>
#include <semaphore.h>
#include "victim.h"

enum { LONG_NS = 100000 };

static uint64_t run_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int sem_post(sem_t *sem)
{
	static int (*post)(sem_t *);
	uint64_t end = run_ns() + LONG_NS;

	if (!post)
		*(void **)&post = dlsym(RTLD_NEXT, "sem_post");
	while (run_ns() < end)
		;
	return post(sem);
}
