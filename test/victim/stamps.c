/* SPDX-License-Identifier: MIT */
/*
 * stamps FILE THREADS CALLS [again]
 *
 * Calls outer() in threads, in a forked child and after an exec, and appends the times around each
 * call to FILE, so that recorded calls can be compared with them one by one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct stamp {
	int32_t pid, tid;
	uint64_t before, after; /* CLOCK_MONOTONIC, ns */
	uint32_t inner, reserved;
};

static int out, calls;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

long inner(long x);
long outer(long n);

__attribute__((noinline)) long inner(long x)
{
	uint64_t until = now() + 200;

	while (now() < until)
		x++;
	return x;
}

__attribute__((noinline)) long outer(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += inner(i);
	__asm__ volatile("" ::: "memory");
	return sum + 1;
}

static void *run(void *name)
{
	struct stamp *stamp = calloc((size_t)calls, sizeof(*stamp));

	if (!stamp)
		abort();
	if (name)
		prctl(PR_SET_NAME, name);
	for (int i = 0; i < calls; i++) {
		stamp[i] = (struct stamp){ .pid = getpid(),
					   .tid = (int32_t)syscall(SYS_gettid),
					   .inner = (uint32_t)i % 4 };
		stamp[i].before = now();
		outer(i % 4);
		stamp[i].after = now();
	}
	if (write(out, stamp, (size_t)calls * sizeof(*stamp)) < 0)
		abort();
	free(stamp);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[64];
	char name[64][32];
	int n = argc > 2 ? atoi(argv[2]) : 1, status;
	pid_t child;

	out = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	calls = argc > 3 ? atoi(argv[3]) : 1000;
	for (int i = 0; i < n; i++) {
		snprintf(name[i], sizeof(name[i]), "stamps-%d", i);
		pthread_create(&thread[i], NULL, run, name[i]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	if (argc > 4)
		return 0;
	child = fork();
	if (child == 0) {
		run(NULL);
		_exit(0);
	}
	run(NULL);
	waitpid(child, &status, 0);
	execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], "again", NULL);
	return 1;
}
