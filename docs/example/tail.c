/* SPDX-License-Identifier: MIT */
/*
 * A store with a bad p99, to practise on: workers handle requests under a lock, and now and then a
 * checkpoint takes the same lock for longer.
 *
 *	cc -O2 -g -pthread -o tail docs/example/tail.c && ./tail [SECONDS]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, ENTRIES = 4096, CHECKPOINT_MS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t store[ENTRIES];
static volatile int over;

#define FUNCTION __attribute__((noinline))

uint64_t parse(uint64_t request);
uint64_t lookup(uint64_t key);
uint64_t handle(uint64_t request);
uint64_t checkpoint(void);

FUNCTION uint64_t parse(uint64_t request)
{
	for (int i = 0; i < 200; i++)
		request = request * 6364136223846793005u + 1442695040888963407u;
	return request;
}

FUNCTION uint64_t lookup(uint64_t key)
{
	uint64_t value;

	pthread_mutex_lock(&lock);
	value = store[key % ENTRIES]++;
	pthread_mutex_unlock(&lock);
	return value;
}

FUNCTION uint64_t handle(uint64_t request)
{
	uint64_t key = parse(request);

	return lookup(key) + parse(key);
}

/* Under the lock: a sum of the store that takes some milliseconds. */
FUNCTION uint64_t checkpoint(void)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&lock);
	for (int round = 0; round < 1000; round++)
		for (int i = 0; i < ENTRIES; i++)
			sum = sum * 31 + store[i];
	pthread_mutex_unlock(&lock);
	return sum;
}

static void *work(void *name)
{
	uint64_t request = 0;

	prctl(PR_SET_NAME, name);
	while (!over) {
		request += handle(request + 1);
		usleep(100);
	}
	return NULL;
}

static void *keep(void *name)
{
	prctl(PR_SET_NAME, name);
	while (!over) {
		usleep(CHECKPOINT_MS * 1000);
		checkpoint();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char names[WORKERS][16];
	pthread_t thread[WORKERS + 1];

	printf("pid %d\n", getpid());
	fflush(stdout);
	for (int i = 0; i < WORKERS; i++) {
		snprintf(names[i], sizeof(names[i]), "worker-%d", i & 7);
		pthread_create(&thread[i], NULL, work, names[i]);
	}
	pthread_create(&thread[WORKERS], NULL, keep, "keeper");
	sleep(argc > 1 ? (unsigned int)atoi(argv[1]) : 600);
	over = 1;
	for (int i = 0; i <= WORKERS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
