/* SPDX-License-Identifier: MIT */
/*
 * subject [sleep N | busy N | delayed N]: what the bench measures. Prints "ready PID ADDRESS" of
 * bench_fn(), then obeys lines on stdin, and answers each with one line:
 *
 *	call T N	T threads call bench_fn() N times each: "NS_PER_CALL CALLS ELAPSED_NS",
 *			the first being the median over batches (the mean of a thread's own)
 *	spin NS N	N calls that wait for NS by a clock: "NS_PER_CALL SHORT_NS", in batches
 *			as call has them, and in some of 20 us: the machine takes the difference
 *	pair N		N calls of bench_fn(), and of its twin that no target names, in turns:
 *			"NS", by how much bench_fn() takes longer (median)
 *	paced T N	T threads call it N times each, a thousand a millisecond in all: "CALLS"
 *	syscall N	getppid() N times: "NS_PER_CALL"
 *	signal N	N signals to itself: "NS_EACH"
 *	clone N		N threads made and joined, on one processor: "NS_EACH". With two, the
 *			figure is 20 us or 50, as the kernel happens to wake the other one.
 *	gap MS		watch the clock for MS: "LARGEST_GAP_NS"
 *
 * The N further threads sleep, spin, or call bench_fn() all the time.
 */
#include <sched.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#include <sys/syscall.h>
#include "../victim/victim.h"

/* A batch of a pair takes some 20 us: an interruption of the processor is in few of them. */
enum { MAX_THREADS = 64, BATCHES = 200, PAIRS = 4000, PACED_A_MS = 1000 };

uint64_t bench_fn(uint64_t x);

static volatile sig_atomic_t signals;

static struct job {
	pthread_t thread;
	uint64_t calls, elapsed_ns, sharers;
	double batch[BATCHES];
} __attribute__((aligned(128))) jobs[MAX_THREADS];

static pthread_barrier_t barrier;

/* With a frame pointer, as distributions build now: its entry is a push, which suits uprobes. */
VICTIM_HOOKED uint64_t bench_fn(uint64_t x)
{
	void *frame = __builtin_frame_address(0);

	VICTIM_OPAQUE(frame);
	VICTIM_OPAQUE(x);
	return x + 1;
}

static __attribute__((noinline)) uint64_t twin(uint64_t x)
{
	void *frame = __builtin_frame_address(0);

	VICTIM_OPAQUE(frame);
	VICTIM_OPAQUE(x);
	return x + 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/*
 * Batches are short: a machine that loses a part of its time in interruptions of 20 to 200 us would
 * show that part in the time of every long one, and it would look like an error of the delay.
 */
static int batches_of(uint64_t calls)
{
	return calls < BATCHES ? (int)calls : BATCHES;
}

static void *do_job(void *arg)
{
	struct job *job = arg;
	int batches = batches_of(job->calls);
	uint64_t done = 0, begin, x = 0;

	pthread_barrier_wait(&barrier);
	begin = victim_now_ns();
	for (int b = 0; b < batches; b++) {
		uint64_t todo = (job->calls * (uint64_t)(b + 1)) / (uint64_t)batches - done;
		uint64_t at = victim_now_ns();

		for (uint64_t i = 0; i < todo; i++)
			x = bench_fn(x);
		job->batch[b] = (double)(victim_now_ns() - at) / (double)todo;
		done += todo;
	}
	job->elapsed_ns = victim_now_ns() - begin;
	if (x != job->calls)
		abort();
	return NULL;
}

static void cmd_call(unsigned long threads, unsigned long calls)
{
	uint64_t elapsed = 0;
	double sum = 0;

	if (threads < 1 || threads > MAX_THREADS)
		abort();
	pthread_barrier_init(&barrier, NULL, (unsigned int)threads);
	for (unsigned long t = 0; t < threads; t++) {
		jobs[t].calls = calls;
		if (t && pthread_create(&jobs[t].thread, NULL, do_job, &jobs[t]))
			abort();
	}
	do_job(&jobs[0]);
	for (unsigned long t = 0; t < threads; t++) {
		if (t)
			pthread_join(jobs[t].thread, NULL);
		if (jobs[t].elapsed_ns > elapsed)
			elapsed = jobs[t].elapsed_ns;
		sum += median(jobs[t].batch, (size_t)batches_of(calls));
	}
	pthread_barrier_destroy(&barrier);
	printf("%.4f %lu %llu\n", sum / (double)threads, threads * calls,
	       (unsigned long long)elapsed);
}

static double ns_a_call(uint64_t (*volatile fn)(uint64_t), unsigned long calls)
{
	uint64_t at = victim_now_ns(), x = 0;

	for (unsigned long i = 0; i < calls; i++)
		x = fn(x);
	return (double)(victim_now_ns() - at) / (double)calls;
}

static void cmd_pair(unsigned long calls)
{
	static double more[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		double plain = ns_a_call(twin, calls / PAIRS);

		more[i] = ns_a_call(bench_fn, calls / PAIRS) - plain;
	}
	printf("%.4f\n", median(more, PAIRS));
}

/* The clock of cmd_spin(). */
static uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return victim_now_ns();
#endif
}

static uint64_t spin_ticks;

static __attribute__((noinline)) uint64_t spin(uint64_t x)
{
	uint64_t since = ticks();

	while (ticks() - since < spin_ticks)
		;
	return x + 1;
}

static uint64_t ticks_of(unsigned long ns)
{
	uint64_t t = ticks(), at = victim_now_ns(), spent;

	do
		spent = victim_now_ns() - at;
	while (spent < 20000000);
	return (uint64_t)((double)ns * (double)(ticks() - t) / (double)spent);
}

static void cmd_spin(unsigned long ns, unsigned long calls)
{
	static double batch[PAIRS];
	size_t batches = (size_t)batches_of(calls), brief = calls < PAIRS ? calls : PAIRS;
	double all;

	spin_ticks = ticks_of(ns);
	for (size_t i = 0; i < batches; i++)
		batch[i] = ns_a_call(spin, calls / batches);
	all = median(batch, batches);
	for (size_t i = 0; i < brief; i++)
		batch[i] = ns_a_call(spin, calls / brief);
	printf("%.4f %.4f\n", all, median(batch, brief));
}

/* Sleeps between the milliseconds, so that a processor is free for others. */
static void *do_paced(void *arg)
{
	struct job *job = arg;
	uint64_t next = victim_now_ns(), x = 0;

	while (x < job->calls) {
		struct timespec until;

		for (int i = 0; i < PACED_A_MS / (int)job->sharers && x < job->calls; i++)
			x = bench_fn(x);
		next += 1000000;
		until = (struct timespec){ (time_t)(next / 1000000000), (long)(next % 1000000000) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return NULL;
}

static void cmd_paced(unsigned long threads, unsigned long calls)
{
	if (threads < 1 || threads > MAX_THREADS)
		abort();
	for (unsigned long t = 0; t < threads; t++) {
		jobs[t].calls = calls;
		jobs[t].sharers = threads;
		if (pthread_create(&jobs[t].thread, NULL, do_paced, &jobs[t]))
			abort();
	}
	for (unsigned long t = 0; t < threads; t++)
		pthread_join(jobs[t].thread, NULL);
	printf("%lu\n", threads * calls);
}

static void cmd_syscall(unsigned long n)
{
	uint64_t begin = victim_now_ns();

	for (unsigned long i = 0; i < n; i++)
		syscall(SYS_getppid);
	printf("%.1f\n", (double)(victim_now_ns() - begin) / (double)n);
}

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void cmd_signal(unsigned long n)
{
	struct sigaction sa = { .sa_handler = on_signal };
	uint64_t begin;

	sigaction(SIGUSR1, &sa, NULL);
	begin = victim_now_ns();
	for (unsigned long i = 0; i < n; i++)
		raise(SIGUSR1);
	printf("%.1f\n", (double)(victim_now_ns() - begin) / (double)n);
}

static void *nothing(void *arg)
{
	return arg;
}

static void cmd_clone(unsigned long n)
{
	cpu_set_t all, one;
	uint64_t begin;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	begin = victim_now_ns();
	for (unsigned long i = 0; i < n; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, nothing, NULL))
			abort();
		pthread_join(t, NULL);
	}
	printf("%.1f\n", (double)(victim_now_ns() - begin) / (double)n);
	sched_setaffinity(0, sizeof(all), &all);
}

static void cmd_gap(unsigned long ms)
{
	uint64_t end, before = victim_now_ns(), gap = 0, now;

	end = before + ms * 1000000;
	puts("watching");
	fflush(stdout);
	do {
		now = victim_now_ns();
		if (now - before > gap)
			gap = now - before;
		before = now;
	} while (now < end);
	printf("%llu\n", (unsigned long long)gap);
}

static void *sleeping(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *busy(void *arg)
{
	for (;;)
		VICTIM_OPAQUE(arg);
	return arg;
}

static void *calling(void *arg)
{
	for (uint64_t x = 0;;)
		x = bench_fn(x);
	return arg;
}

static void start_extra(const char *mode, int n)
{
	static void *(*const modes[])(void *) = { sleeping, busy, calling };
	static const char *const names[] = { "sleep", "busy", "delayed" };
	void *(*fn)(void *) = sleeping;
	pthread_attr_t attr;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(mode, names[i]) == 0)
			fn = modes[i];
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < n; i++) {
		pthread_t t;

		if (pthread_create(&t, &attr, fn, NULL))
			abort();
	}
}

int main(int argc, char **argv)
{
	char line[256], verb[32];

	if (argc == 3)
		start_extra(argv[1], atoi(argv[2]));
	printf("ready %d %p\n", (int)getpid(), (void *)(uintptr_t)bench_fn);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned long a = 0, b = 0;

		if (sscanf(line, "%31s %lu %lu", verb, &a, &b) < 2)
			return 2;
		if (strcmp(verb, "call") == 0)
			cmd_call(a, b);
		else if (strcmp(verb, "spin") == 0)
			cmd_spin(a, b);
		else if (strcmp(verb, "pair") == 0)
			cmd_pair(a);
		else if (strcmp(verb, "paced") == 0)
			cmd_paced(a, b);
		else if (strcmp(verb, "syscall") == 0)
			cmd_syscall(a);
		else if (strcmp(verb, "signal") == 0)
			cmd_signal(a);
		else if (strcmp(verb, "clone") == 0)
			cmd_clone(a);
		else if (strcmp(verb, "gap") == 0)
			cmd_gap(a);
		else
			return 2;
		fflush(stdout);
	}
	return 0;
}
