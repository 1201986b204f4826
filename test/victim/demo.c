/* SPDX-License-Identifier: MIT */
/*
 * demo THREADS: the program of `make demo`. Threads take items off a counter; each item is one
 * call of work_item() and some work beside it. Prints items a second, twice a second.
 */
#include "victim.h"

enum { MAX_THREADS = 64 };

uint64_t work_item(uint64_t x);

static struct {
	uint64_t items;
} __attribute__((aligned(128))) done[MAX_THREADS];

VICTIM_HOOKED uint64_t work_item(uint64_t x)
{
	for (int i = 0; i < 20000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		VICTIM_OPAQUE(x);
	}
	return x;
}

static void *worker(void *arg)
{
	uint64_t *items = arg, x = 1;

	while (!victim_stop) {
		x = work_item(x);
		__atomic_store_n(items, *items + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	uint64_t before = 0, at = victim_now_ns();
	pthread_t thread[MAX_THREADS];

	victim_catch_term();
	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, worker, &done[i].items))
			return 2;
	victim_ready();
	while (!victim_stop) {
		uint64_t sum = 0, now;

		victim_sleep_ns(500000000);
		now = victim_now_ns();
		for (int i = 0; i < threads; i++)
			sum += __atomic_load_n(&done[i].items, __ATOMIC_RELAXED);
		printf("%.0f items/s\n", (double)(sum - before) * 1e9 / (double)(now - at));
		before = sum;
		at = now;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return victim_done(true);
}
