/* SPDX-License-Identifier: MIT */
/*
 * threads MODE N: sleep	N threads asleep, one that calls thread_fn() and watches the clock
 *		   busy		N threads calling thread_fn() without a pause
 *		   churn	N threads that start and join short threads, on the smallest stacks
 *
 * gap_ns is the largest time that a thread which only watches the clock saw pass between two
 * looks at it: the time that it was held, or off its processor.
 */
#include <limits.h>
#include "victim.h"

enum { MAX_THREADS = 2048, SHORT_CALLS = 5 };

uint64_t thread_fn(uint64_t x);

static struct worker {
	pthread_t thread;
	uint64_t calls, errors, gap_ns;
} __attribute__((aligned(128))) workers[MAX_THREADS];

VICTIM_HOOKED uint64_t thread_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 11 + 6;
	VICTIM_OPAQUE(x);
	return x;
}

static void call(struct worker *w)
{
	if (thread_fn(w->calls) != w->calls * 11 + 6)
		w->errors++;
	__atomic_store_n(&w->calls, w->calls + 1, __ATOMIC_RELAXED);
}

static void *sleeper(void *arg)
{
	(void)arg;
	while (!victim_stop)
		victim_sleep_ns(200000000);
	return NULL;
}

static void *busy(void *arg)
{
	struct worker *w = arg;

	while (!victim_stop)
		call(w);
	return NULL;
}

static void *shortlived(void *arg)
{
	for (int i = 0; i < SHORT_CALLS; i++)
		call(arg);
	return NULL;
}

static void *churner(void *arg)
{
	struct worker *w = arg;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
	while (!victim_stop) {
		pthread_t t;

		if (pthread_create(&t, &attr, shortlived, w)) {
			w->errors++;
			break;
		}
		pthread_join(t, NULL);
	}
	pthread_attr_destroy(&attr);
	return NULL;
}

/* Calls now and then and measures how long it was away from its processor. */
static void watch(struct worker *w)
{
	uint64_t before = victim_now_ns(), now;

	while (!victim_stop) {
		for (int i = 0; i < 50; i++)
			call(w);
		now = victim_now_ns();
		if (now - before > w->gap_ns)
			w->gap_ns = now - before;
		before = now;
	}
}

int main(int argc, char **argv)
{
	static const struct mode {
		const char *name;
		void *(*fn)(void *);
	} modes[] = { { "sleep", sleeper }, { "busy", busy }, { "churn", churner } };
	const struct mode *mode = NULL;
	struct worker *watcher = &workers[MAX_THREADS - 1];
	int n = argc > 2 ? atoi(argv[2]) : 0;
	uint64_t calls = 0, errors = 0;

	victim_catch_term();
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			mode = &modes[i];
	if (!mode || n < 0 || n >= MAX_THREADS)
		return 2;
	for (int i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, mode->fn, &workers[i]))
			return 2;
	victim_ready();
	watch(watcher);
	for (int i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < MAX_THREADS; i++) {
		calls += workers[i].calls;
		errors += workers[i].errors;
	}
	victim_calls("thread_fn", calls);
	printf("gap_ns %llu\n", (unsigned long long)watcher->gap_ns);
	return victim_done(errors == 0);
}
