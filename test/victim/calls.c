/* SPDX-License-Identifier: MIT */
/*
 * calls: T threads call victim_work() N times each and count every call.
 *
 *	-t T	threads (1)		-n N	calls a thread; 0 (the default): until SIGTERM
 *	-g FILE	wait for FILE first	-p NS	sleep this long between calls
 *	-r	print the rate		-l LIB	call lib_fn() of this library as well
 *	-w	after the calls wait for SIGTERM
 *
 * Threads are named work-0, work-1, ... The last lines also say how long the calls took
 * (elapsed_ns) and the largest gap that a thread saw between two of them (gap_ns).
 */
#include <dlfcn.h>
#include "victim.h"

enum { MAX_THREADS = 1024 };

uint64_t victim_work(uint64_t x);
uint64_t victim_other(uint64_t x);
uint64_t victim_idle(uint64_t x);
uint64_t calls_twin_user(uint64_t x);

uint64_t victim_data = 42; /* a data symbol, for the test that targets it */

struct worker {
	pthread_t thread;
	unsigned int index;
	uint64_t calls, lib_calls, errors, elapsed_ns, gap_ns;
} __attribute__((aligned(128)));

static struct {
	unsigned int threads;
	uint64_t calls, pause_ns;
	const char *gate;
	bool rate, linger;
	uint64_t (*lib_fn)(uint64_t);
} opt = { .threads = 1 };

static struct worker workers[MAX_THREADS];

VICTIM_HOOKED uint64_t victim_work(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 3 + 1;
	VICTIM_OPAQUE(x);
	return x;
}

VICTIM_HOOKED uint64_t victim_other(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = (x ^ 0x55) + 7;
	VICTIM_OPAQUE(x);
	return x;
}

/* Never called: its target must be reported as such. */
VICTIM_HOOKED uint64_t victim_idle(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + victim_data;
}

static VICTIM_HOOKED uint64_t twin(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + 1;
}

static void one_call(struct worker *w, uint64_t i)
{
	if (victim_work(i) != i * 3 + 1)
		w->errors++;
	__atomic_store_n(&w->calls, w->calls + 1, __ATOMIC_RELAXED);
	if (opt.lib_fn) {
		if (opt.lib_fn(i) != i + 5)
			w->errors++;
		w->lib_calls++;
	}
	if ((i & 1023) == 0 && victim_other(i) != (i ^ 0x55) + 7)
		w->errors++;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	char name[16];
	uint64_t begin, before, now;

	snprintf(name, sizeof(name), "work-%u", w->index);
	pthread_setname_np(pthread_self(), name);
	victim_gate(opt.gate);
	begin = before = victim_now_ns();
	for (uint64_t i = 0; !victim_stop && (!opt.calls || i < opt.calls); i++) {
		one_call(w, i);
		if (opt.pause_ns)
			victim_sleep_ns(opt.pause_ns);
		if ((i & 255) == 0) {
			now = victim_now_ns();
			if (now - before > w->gap_ns)
				w->gap_ns = now - before;
			before = now;
		}
	}
	w->elapsed_ns = victim_now_ns() - begin;
	return NULL;
}

static uint64_t total(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < opt.threads; i++)
		sum += __atomic_load_n(&workers[i].calls, __ATOMIC_RELAXED);
	return sum;
}

static void *print_rate(void *arg)
{
	uint64_t calls = total(), at = victim_now_ns();

	(void)arg;
	while (!victim_stop) {
		uint64_t now, sum;

		victim_sleep_ns(100000000);
		now = victim_now_ns();
		sum = total();
		printf("rate %.0f\n", (double)(sum - calls) * 1e9 / (double)(now - at));
		calls = sum;
		at = now;
	}
	return NULL;
}

static int options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:n:g:p:rl:w")) != -1) {
		switch (c) {
		case 't':
			opt.threads = (unsigned int)atoi(optarg);
			break;
		case 'n':
			opt.calls = strtoull(optarg, NULL, 0);
			break;
		case 'g':
			opt.gate = optarg;
			break;
		case 'p':
			opt.pause_ns = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			opt.rate = true;
			break;
		case 'w':
			opt.linger = true;
			break;
		case 'l':
			opt.lib_fn = (uint64_t(*)(uint64_t))dlsym(dlopen(optarg, RTLD_NOW),
								  "lib_fn");
			if (!opt.lib_fn)
				return 2;
			break;
		default:
			return 2;
		}
	}
	return opt.threads < 1 || opt.threads > MAX_THREADS ? 2 : 0;
}

static int report(void)
{
	uint64_t lib = 0, errors = 0, gap = 0, elapsed = 0;

	for (unsigned int i = 0; i < opt.threads; i++) {
		lib += workers[i].lib_calls;
		errors += workers[i].errors;
		if (workers[i].gap_ns > gap)
			gap = workers[i].gap_ns;
		if (workers[i].elapsed_ns > elapsed)
			elapsed = workers[i].elapsed_ns;
	}
	victim_calls("victim_work", total());
	if (opt.lib_fn)
		victim_calls("lib_fn", lib);
	printf("elapsed_ns %llu\ngap_ns %llu\n", (unsigned long long)elapsed,
	       (unsigned long long)gap);
	return victim_done(errors == 0 && calls_twin_user(1) == 3 && twin(1) == 2);
}

int main(int argc, char **argv)
{
	pthread_t printer;

	victim_catch_term();
	if (options(argc, argv)) {
		fprintf(stderr, "calls: bad options\n");
		return 2;
	}
	for (unsigned int i = 0; i < opt.threads; i++) {
		workers[i].index = i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	}
	if (opt.rate && pthread_create(&printer, NULL, print_rate, NULL))
		return 2;
	victim_ready();
	for (unsigned int i = 0; i < opt.threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (opt.linger) {
		puts("called");
		while (!victim_stop)
			victim_sleep_ns(2000000);
	}
	return report();
}
