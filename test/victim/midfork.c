/* SPDX-License-Identifier: MIT */
/*
 * midfork GATE GO: a thread forks as soon as the file GATE exists. The child waits for the file GO,
 * calls midfork_fn() MIDFORK_CALLS times and says "child ready"; its parent never calls it. Both
 * run until SIGTERM, which the parent passes on.
 */
#include <sys/wait.h>
#include "victim.h"

enum { MIDFORK_CALLS = 1000 };

uint64_t midfork_fn(uint64_t x);

static const char *gate, *go;
static pid_t child;
static bool wrong;

VICTIM_HOOKED uint64_t midfork_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 23 + 2;
	VICTIM_OPAQUE(x);
	return x;
}

static void be_child(void)
{
	bool ok = true;

	victim_gate(go);
	for (uint64_t i = 0; i < MIDFORK_CALLS; i++)
		ok &= midfork_fn(i) == i * 23 + 2;
	puts("child ready");
	fflush(stdout);
	while (!victim_stop)
		victim_sleep_ns(2000000);
	_exit(ok ? 7 : 1);
}

static void *forks(void *arg)
{
	while (!victim_stop && access(gate, F_OK) != 0)
		victim_sleep_ns(500000);
	if (victim_stop)
		return arg;
	child = fork();
	if (child == 0)
		be_child();
	printf("child %d\n", child);
	fflush(stdout);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int status;

	if (argc != 3)
		return 2;
	gate = argv[1];
	go = argv[2];
	victim_catch_term();
	if (pthread_create(&t, NULL, forks, NULL))
		return 2;
	victim_ready();
	while (!victim_stop)
		victim_sleep_ns(2000000);
	pthread_join(t, NULL);
	if (child > 0) {
		kill(child, SIGTERM);
		wrong |= waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
			 WEXITSTATUS(status) != 7;
	}
	return victim_done(!wrong);
}
