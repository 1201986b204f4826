/* SPDX-License-Identifier: MIT */
/*
 * Threads that each spend nearly all of their time for one reason, and are named by it: v-cpu,
 * v-sleep, v-futex, v-pipe (reads a pipe), v-socket (receives from one), v-idle (waits for ever);
 * v-mix works for 1 ms and sleeps for 3 ms, in turn.
 * The first thread calls item() and gives each of them something to do, every 2 ms. "-c": so does a
 * child process, instead.
 *
 * At its end: "mixed CPU SLEPT", the ns that v-mix worked and slept, by its own stamps.
 */
#include "victim.h"
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int pipe_end[2], socket_end[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static volatile unsigned int rung;
static uint64_t items;

VICTIM_HOOKED void item(void);
void item(void)
{
	__atomic_fetch_add(&items, 1, __ATOMIC_RELAXED);
}

static void wait_cpu(void)
{
	uint64_t until = victim_now_ns() + 1000000;

	while (victim_now_ns() < until)
		;
}

static void wait_sleep(void)
{
	victim_sleep_ns(2000000);
}

static void wait_futex(void)
{
	static unsigned int seen;

	pthread_mutex_lock(&lock);
	while (rung == seen)
		pthread_cond_wait(&bell, &lock);
	seen = rung;
	pthread_mutex_unlock(&lock);
}

static void wait_pipe(void)
{
	char byte;

	if (read(pipe_end[0], &byte, 1) != 1)
		abort();
}

static void wait_socket(void)
{
	char byte;

	if (recv(socket_end[0], &byte, 1, 0) != 1)
		abort();
}

static void wait_idle(void)
{
	sleep(3600);
}

static uint64_t mixed_cpu_ns, mixed_sleep_ns;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* 1 ms of work, then 3 ms of sleep. */
static void wait_mix(void)
{
	uint64_t before = cpu_ns(), slept;

	while (cpu_ns() < before + 1000000)
		;
	mixed_cpu_ns += cpu_ns() - before;
	slept = victim_now_ns();
	victim_sleep_ns(3000000);
	mixed_sleep_ns += victim_now_ns() - slept;
}

static const struct waiter {
	const char *name;
	void (*wait)(void);
} waiters[] = {
	{ "v-cpu", wait_cpu },	 { "v-sleep", wait_sleep },   { "v-futex", wait_futex },
	{ "v-pipe", wait_pipe }, { "v-socket", wait_socket }, { "v-idle", wait_idle },
	{ "v-mix", wait_mix },
};

enum { WAITERS = sizeof(waiters) / sizeof(*waiters) };

static void *run(void *arg)
{
	const struct waiter *w = arg;

	prctl(PR_SET_NAME, w->name);
	for (;;)
		w->wait();
	return NULL;
}

static void work(void)
{
	pthread_t thread;

	if (pipe(pipe_end) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_end) < 0)
		abort();
	for (int i = 0; i < WAITERS; i++)
		if (pthread_create(&thread, NULL, run, (void *)&waiters[i]) != 0)
			abort();
	victim_ready();
	while (!victim_stop) {
		victim_sleep_ns(2000000);
		item();
		if (write(pipe_end[1], "", 1) != 1 || send(socket_end[1], "", 1, 0) != 1)
			abort();
		pthread_mutex_lock(&lock);
		rung++;
		pthread_cond_signal(&bell);
		pthread_mutex_unlock(&lock);
	}
	victim_calls("item", items);
	printf("mixed %llu %llu\n", (unsigned long long)mixed_cpu_ns,
	       (unsigned long long)mixed_sleep_ns);
}

int main(int argc, char **argv)
{
	pid_t child = 0;

	victim_catch_term();
	if (argc > 1 && !strcmp(argv[1], "-c"))
		child = fork();
	if (!child) {
		work();
	} else {
		while (!victim_stop)
			pause();
		kill(child, SIGTERM);
		waitpid(child, NULL, 0);
		return 0;
	}
	return victim_done(true);
}
