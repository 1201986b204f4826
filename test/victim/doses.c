/* SPDX-License-Identifier: MIT */
/*
 * doses: T threads call victim_work() and time the calls by the clock of the program.
 *
 *	-t T	threads (1)		-b N	calls that one sample holds (1)
 *	-f FIFO	where commands come from
 *
 * For each line of the FIFO the threads take new samples for a quarter of a second, and
 * `dose MEDIAN P5 SAMPLES` is printed: the median and the 5th percentile of the time of one call,
 * in tenths of a nanosecond, the clock's own reading included.
 */
#include "victim.h"

uint64_t victim_work(uint64_t x);

enum { MAX_THREADS = 64, MAX_SAMPLES = 20000, TAKE_NS = 250000000 };

static struct {
	unsigned int threads, batch;
	const char *fifo;
} opt = { .threads = 1, .batch = 1 };

struct worker {
	pthread_t thread;
	uint64_t taken, round, errors;
	uint64_t sample[MAX_SAMPLES]; /* ns of a batch */
} __attribute__((aligned(128)));

static struct worker workers[MAX_THREADS];
static uint64_t round_now; /* odd: samples are taken */

VICTIM_HOOKED uint64_t victim_work(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 3 + 1;
	VICTIM_OPAQUE(x);
	return x;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (uint64_t x = 0; !victim_stop; x++) {
		uint64_t begun = __atomic_load_n(&round_now, __ATOMIC_ACQUIRE);
		uint64_t start = victim_now_ns(), taken;

		for (unsigned int i = 0; i < opt.batch; i++)
			w->errors += victim_work(x) != x * 3 + 1;
		start = victim_now_ns() - start;
		if (!(begun & 1) || __atomic_load_n(&round_now, __ATOMIC_ACQUIRE) != begun)
			continue;
		taken = w->round == begun ? w->taken : 0;
		if (taken < MAX_SAMPLES)
			w->sample[taken++] = start;
		w->taken = taken;
		__atomic_store_n(&w->round, begun, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The round is over when each thread has left it: a call that spans its end is thrown away. */
static void take(uint64_t *all)
{
	uint64_t this, n = 0;

	this = __atomic_add_fetch(&round_now, 1, __ATOMIC_ACQ_REL);
	victim_sleep_ns(TAKE_NS);
	__atomic_add_fetch(&round_now, 1, __ATOMIC_ACQ_REL);
	victim_sleep_ns(20000000);
	for (unsigned int t = 0; t < opt.threads; t++)
		for (uint64_t i = 0; workers[t].round == this && i < workers[t].taken; i++)
			all[n++] = workers[t].sample[i];
	qsort(all, n, sizeof(*all), by_size);
	if (!n)
		all[0] = 0;
	printf("dose %llu %llu %llu\n", (unsigned long long)(all[n / 2] * 10 / opt.batch),
	       (unsigned long long)(all[n / 20] * 10 / opt.batch), (unsigned long long)n);
}

int main(int argc, char **argv)
{
	uint64_t *all = calloc((size_t)MAX_THREADS * MAX_SAMPLES, sizeof(*all)), errors = 0;
	char line[64];
	FILE *commands;
	int c;

	while ((c = getopt(argc, argv, "t:b:f:")) != -1) {
		if (c == 'f')
			opt.fifo = optarg;
		else
			*(c == 't' ? &opt.threads : &opt.batch) = (unsigned int)atoi(optarg);
	}
	commands = opt.fifo ? fopen(opt.fifo, "r+") : NULL; /* r+: its writers come and go */
	if (!all || !commands || opt.threads > MAX_THREADS || !opt.batch)
		return 2;
	victim_catch_term();
	for (unsigned int t = 0; t < opt.threads; t++)
		pthread_create(&workers[t].thread, NULL, work, &workers[t]);
	victim_ready();
	while (!victim_stop && fgets(line, sizeof(line), commands))
		take(all);
	victim_stop = 1;
	for (unsigned int t = 0; t < opt.threads; t++) {
		pthread_join(workers[t].thread, NULL);
		errors += workers[t].errors;
	}
	fclose(commands);
	free(all);
	return victim_done(!errors);
}
