/* SPDX-License-Identifier: MIT */
/* The control: a tracer that does nothing but what each tracer must. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

enum { BARE_STOPS = 3 };

/* Stops all and lets them run on at once: from the first interrupt to the last continuation, ms. */
static double bare_stop(const pid_t *tid, size_t n)
{
	double begin = now_ms();

	for (size_t i = 0; i < n; i++)
		ptrace(PTRACE_INTERRUPT, tid[i], 0, 0);
	for (size_t i = 0; i < n; i++)
		waitpid(tid[i], NULL, __WALL);
	for (size_t i = 0; i < n; i++)
		ptrace(PTRACE_CONT, tid[i], 0, 0);
	return now_ms() - begin;
}

/* All at once: where 1000 threads share two processors, each in its turn would wait a second. */
static void let_go(const pid_t *tid, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ptrace(PTRACE_INTERRUPT, tid[i], 0, 0);
	for (size_t i = 0; i < n; i++) {
		waitpid(tid[i], NULL, __WALL);
		ptrace(PTRACE_DETACH, tid[i], 0, 0);
	}
}

double bare_hold(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	double shortest = NAN;
	pid_t *tid = NULL;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			tid = realloc(tid, (n + 1) * sizeof(*tid));
			tid[n] = atoi(entry->d_name);
			if (ptrace(PTRACE_SEIZE, tid[n], 0, 0) == 0)
				n++;
		}
	for (int i = 0; i < BARE_STOPS; i++)
		shortest = fmin(shortest, bare_stop(tid, n));
	let_go(tid, n);
	if (dir)
		closedir(dir);
	free(tid);
	return shortest;
}

/* Continues whatever stops, for ever. */
static void follow(pid_t pid, int ready)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACECLONE) < 0)
		_exit(1);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0)
			_exit(0);
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	}
}

pid_t bare_follow(pid_t pid)
{
	int ready[2];
	pid_t tracer;
	char byte;

	if (pipe(ready))
		return -1;
	tracer = fork();
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		follow(pid, ready[1]);
	}
	close(ready[1]);
	if (tracer > 0 && read(ready[0], &byte, 1) != 1) {
		bare_end(tracer);
		tracer = -1;
	}
	close(ready[0]);
	return tracer;
}

void bare_end(pid_t tracer)
{
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
}
