/* SPDX-License-Identifier: MIT */
/* Counters of the processor: opening, inheriting, scaling and reading, with events that every
 * kernel has. */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/evidence.h"
#include "evidence/hardware.h"
#include "evidence/tasks.h"

enum { CLOCK, FAULTS, SWITCHES, MIGRATIONS, EVENTS };

static const struct hardware_event software[EVENTS] = {
	[CLOCK] = { "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	[FAULTS] = { "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	[SWITCHES] = { "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	[MIGRATIONS] = { "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
};

static struct hardware *begun(bool children)
{
	struct hardware *h = hardware_open(software, EVENTS, children);

	hardware_add(h, getpid());
	hardware_begin(h);
	return h;
}

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct work {
	uint64_t ns;
	size_t pages;
	int sleeps;
	pid_t tid;
	uint64_t took_ns; /* on a processor, by its own clock */
};

static void *work(void *arg)
{
	struct work *w = arg;
	uint64_t from = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	char *page = mmap(NULL, w->pages * 4096 + 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	w->tid = (pid_t)syscall(SYS_gettid);
	assert_true(page != MAP_FAILED);
	madvise(page, w->pages * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < w->pages; i++)
		((volatile char *)page)[i * 4096] = 1;
	munmap(page, w->pages * 4096 + 4096);
	for (int i = 0; i < w->sleeps; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from < w->ns)
		;
	w->took_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - from;
	return NULL;
}

static void assert_near(uint64_t value, uint64_t truth, uint64_t slack)
{
	uint64_t off = value > truth ? value - truth : truth - value;

	if (off > truth / 50 + slack)
		fail_msg("%llu, and it was %llu", (unsigned long long)value,
			 (unsigned long long)truth);
}

static uint64_t faults_of(const struct rusage *u)
{
	return (uint64_t)(u->ru_minflt + u->ru_majflt);
}

static uint64_t switches_of(const struct rusage *u)
{
	return (uint64_t)(u->ru_nvcsw + u->ru_nivcsw);
}

/* Threads that begin later are counted with the one that starts them, and stay so when they end. */
static void test_threads(void **state)
{
	struct work own = { 60000000, 2000, 100, 0, 0 }, other = { 60000000, 1000, 50, 0, 0 };
	struct rusage before, after;
	struct hardware_about about;
	uint64_t cpu, value;
	struct hardware *h;
	pthread_t thread;

	(void)state;
	h = begun(true);
	if (hardware_unknown(h, CLOCK))
		skip();
	cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(pthread_create(&thread, NULL, work, &other), 0);
	work(&own);
	pthread_join(thread, NULL);
	hardware_read(h);
	getrusage(RUSAGE_SELF, &after);
	cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	assert_near(hardware_sum(h, CLOCK), cpu, 2000000);
	assert_near(hardware_sum(h, FAULTS), faults_of(&after) - faults_of(&before), 20);
	assert_near(hardware_sum(h, SWITCHES), switches_of(&after) - switches_of(&before), 3);
	assert_true(hardware_thread(h, getpid(), CLOCK, &value));
	assert_true(value == hardware_sum(h, CLOCK) &&
		    value >= own.took_ns + other.took_ns - 2000000);
	assert_false(hardware_thread(h, other.tid, CLOCK, &value));
	hardware_about(h, &about);
	assert_int_equal(about.threads, 1);
	assert_int_equal(about.left_out + about.unsure, 0);
	assert_true(about.counted == 1);
	hardware_close(h);
}

/* Each thread that is there has events of its own; what it did before does not count. */
static void *wait_and_work(void *arg)
{
	struct work *w = arg;

	pthread_barrier_wait((pthread_barrier_t *)(void *)w->took_ns);
	pthread_barrier_wait((pthread_barrier_t *)(void *)w->took_ns);
	w->took_ns = 0;
	return work(w);
}

static void test_each_thread(void **state)
{
	pthread_barrier_t barrier;
	struct work w = { 50000000, 500, 0, 0, (uint64_t)(uintptr_t)&barrier };
	uint64_t own, others;
	struct hardware *h;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_and_work, &w), 0);
	pthread_barrier_wait(&barrier);
	work(&(struct work){ 50000000, 5000, 0, 0, 0 }); /* before */
	h = begun(true);
	if (hardware_unknown(h, CLOCK))
		skip();
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	hardware_read(h);
	assert_true(hardware_thread(h, w.tid, CLOCK, &others));
	assert_near(others, w.took_ns, 2000000);
	assert_true(hardware_thread(h, getpid(), CLOCK, &own));
	assert_true(own < 20000000);
	assert_int_equal(hardware_sum(h, CLOCK), own + others);
	assert_true(hardware_thread(h, w.tid, FAULTS, &others));
	assert_near(others, 500, 50);
	hardware_read(h); /* nothing is added twice */
	assert_near(hardware_sum(h, FAULTS), 500, 100);
	hardware_close(h);
	pthread_barrier_destroy(&barrier);
}

static void fork_and_work(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		work(&(struct work){ 50000000, 4000, 0, 0, 0 });
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Children are counted where they are asked for, and only there. */
static void test_children(void **state)
{
	struct hardware *with = begun(true), *without = begun(false);

	(void)state;
	if (hardware_unknown(with, CLOCK) || hardware_unknown(without, CLOCK))
		skip();
	fork_and_work();
	hardware_read(with);
	hardware_read(without);
	assert_true(hardware_sum(with, CLOCK) >= 48000000);
	assert_true(hardware_sum(with, FAULTS) >= 4000);
	assert_true(hardware_sum(without, CLOCK) < 25000000);
	assert_true(hardware_sum(without, FAULTS) < 4000);
	hardware_close(with);
	hardware_close(without);
}

static void test_scaled(void **state)
{
	struct hardware_raw a = { 1000, 100, 100 }, b = { 1300, 400, 250 }, c = { 1300, 900, 250 },
			    d = { 1500, 1200, 350 };
	double growth;

	(void)state;
	assert_true(hardware_growth(&a, &b, &growth)); /* for half the time */
	assert_true(growth == 600);
	assert_false(hardware_growth(&b, &c, &growth)); /* it had no turn: not 0, not known */
	assert_true(hardware_growth(&b, &d, &growth));	/* the time without a turn is in it */
	assert_true(growth == 1600);
	assert_true(hardware_growth(&a, &a, &growth) == false);
}

/* Descriptors are for all else, too: threads beyond those are left out, and counted as such. */
static void *wait_twice(void *arg)
{
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

static int few_descriptors(void)
{
	struct rlimit limit = { 256 + 2 * EVENTS + 1, 256 + 2 * EVENTS + 1 };
	struct hardware_about about;
	pthread_barrier_t barrier;
	pthread_t thread[4];
	struct hardware *h;

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	pthread_barrier_init(&barrier, NULL, 5);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, wait_twice, &barrier))
			return 2;
	pthread_barrier_wait(&barrier);
	h = begun(true);
	hardware_about(h, &about);
	pthread_barrier_wait(&barrier);
	hardware_close(h);
	return about.threads == 2 && about.left_out == 3 && about.unsure == 0 ? 0 : 3;
}

static void test_few_descriptors(void **state)
{
	struct hardware *h = begun(true);
	bool known = !hardware_unknown(h, CLOCK);
	int status;
	pid_t pid;

	(void)state;
	hardware_close(h);
	if (!known)
		skip();
	pid = fork();
	if (!pid)
		_exit(few_descriptors());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* An event that a machine lacks has a reason, and the others are counted all the same. */
static void test_absent(void **state)
{
	static const struct hardware_event events[] = {
		{ "no-such-event", PERF_TYPE_SOFTWARE, 1000 },
		{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	};
	struct hardware *h = hardware_open(events, 2, true);

	(void)state;
	assert_string_equal(hardware_unknown(h, 1), "counting has not begun");
	hardware_add(h, getpid());
	hardware_begin(h);
	if (hardware_unknown(h, 1))
		skip();
	assert_memory_equal(hardware_unknown(h, 0),
			    "not on this machine: no hardware counters (no-such-event: ", 58);
	work(&(struct work){ 0, 300, 0, 0, 0 });
	hardware_read(h);
	assert_near(hardware_sum(h, 1), 300, 20);
	assert_int_equal(hardware_sum(h, 0), 0);
	hardware_close(h);
}

/* No processor's counters without a reason or a count. */
static void test_this_machine(void **state)
{
	struct evidence_config cfg = { .groups = 1u << GROUP_HARDWARE };
	struct evidence *e = evidence_open(&cfg);
	struct evidence_reading r;

	(void)state;
	evidence_add(e, getpid());
	evidence_begin(e);
	work(&(struct work){ 20000000, 100, 0, 0, 0 });
	evidence_take(e, &r);
	for (int c = EVIDENCE_CYCLES; c <= EVIDENCE_INSTRUCTIONS; c++) {
		const char *why = evidence_unknown(e, c);

		if (why && !strstr(why, "no hardware counters") && !strstr(why, "permit"))
			fail_msg("%s", why);
		assert_true(why || r.sum.of[c] > 1000000);
	}
	assert_non_null(evidence_unknown(e, EVIDENCE_FAULTS_MINOR));
	evidence_reading_free(&r);
	evidence_close(e);
}

static void test_tasks(void **state)
{
	struct tasks a = { 0 }, b = { 0 };

	(void)state;
	for (int i = 0; i < 7; i++)
		tasks_add(&a, (pid_t[]){ 5, 1, 9, 5, 3, 1, 7 }[i]);
	assert_int_equal(a.n, 5);
	for (size_t i = 1; i < a.n; i++)
		assert_true(a.id[i - 1] < a.id[i]);
	tasks_add(&b, 3);
	tasks_add(&b, 8);
	assert_int_equal(tasks_missing(&a, &b), 4);
	assert_int_equal(tasks_missing(&b, &a), 1);
	tasks_free(&a);
	tasks_add(&a, getpid());
	tasks_threads(&a, true, &b);
	assert_true(b.n >= 1 && !tasks_missing(&a, &b));
	tasks_free(&a);
	tasks_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks),		cmocka_unit_test(test_scaled),
		cmocka_unit_test(test_threads),		cmocka_unit_test(test_each_thread),
		cmocka_unit_test(test_children),	cmocka_unit_test(test_absent),
		cmocka_unit_test(test_few_descriptors), cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
