/* SPDX-License-Identifier: MIT */
/*
 * tree CALLS FORKS [GATE]: makes children in every way there is, FORKS of each; each process,
 * the first included, calls tree_fn() CALLS times. Everyone reports down one pipe, daemons too,
 * and the first process prints the sum.
 */
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include "victim.h"

extern char **environ;
uint64_t tree_fn(uint64_t x);

static uint64_t calls, errors;
static int report_fd;
static char *self, *calls_text, fd_text[16];

VICTIM_HOOKED uint64_t tree_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 5 + 2;
	VICTIM_OPAQUE(x);
	return x;
}

static void call_and_report(void)
{
	uint64_t done = 0;

	for (; done < calls; done++)
		if (tree_fn(done) != done * 5 + 2)
			_exit(3);
	if (write(report_fd, &done, sizeof(done)) != sizeof(done))
		_exit(4);
}

static int thread_like(void *arg)
{
	(void)arg;
	call_and_report();
	_exit(0);
}

static pid_t by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		call_and_report();
		_exit(0);
	}
	return pid;
}

static pid_t by_daemon(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		if (fork() == 0)
			call_and_report();
		_exit(0);
	}
	return pid;
}

static pid_t by_vfork(void)
{
	char *args[] = { self, (char *)"leaf", calls_text, fd_text, NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		execv(self, args);
		_exit(5);
	}
	return pid;
}

static pid_t by_spawn(void)
{
	char *args[] = { self, (char *)"leaf", calls_text, fd_text, NULL };
	pid_t pid = -1;

	return posix_spawn(&pid, self, NULL, NULL, args, environ) ? -1 : pid;
}

static pid_t by_clone_vm(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	return clone(thread_like, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
}

/* A child's child that outlives both of its parents for a moment and execs. */
static pid_t by_deep_exec(void)
{
	char *args[] = { self, (char *)"leaf", calls_text, fd_text, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		pid_t inner = fork();

		if (inner == 0) {
			execv(self, args);
			_exit(5);
		}
		call_and_report();
		_exit(0);
	}
	return pid;
}

static void reap(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "tree: child %d: status 0x%x\n", (int)pid, (unsigned int)status);
		errors++;
	}
}

int main(int argc, char **argv)
{
	static pid_t (*const ways[])(void) = { by_fork,	 by_daemon,   by_vfork,
					       by_spawn, by_clone_vm, by_deep_exec };
	uint64_t sum = 0, one;
	int fds[2];

	if (argc >= 4 && strcmp(argv[1], "leaf") == 0) {
		calls = strtoull(argv[2], NULL, 0);
		report_fd = atoi(argv[3]);
		call_and_report();
		return 0;
	}
	victim_catch_term();
	if (argc < 3 || pipe(fds) != 0)
		return 2;
	self = argv[0];
	calls_text = argv[1];
	calls = strtoull(argv[1], NULL, 0);
	report_fd = fds[1];
	snprintf(fd_text, sizeof(fd_text), "%d", report_fd);
	victim_ready();
	victim_gate(argc > 3 ? argv[3] : NULL);
	call_and_report();
	for (int n = atoi(argv[2]); n > 0; n--)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			reap(ways[i]());
	close(fds[1]);
	while (read(fds[0], &one, sizeof(one)) == sizeof(one))
		sum += one;
	victim_calls("tree_fn", sum);
	puts("called");
	while (argc > 3 && !victim_stop)
		victim_sleep_ns(2000000);
	/* one for itself, one each by 5 ways, two by the deep one */
	return victim_done(errors == 0 && sum == calls * (1 + (uint64_t)atoi(argv[2]) * 7));
}
