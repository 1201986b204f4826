/* SPDX-License-Identifier: MIT */
/*
 * odd zombie		has a child that is a zombie; prints "pid N"
 * odd tracer PID	traces PID without stopping it, so that no other process can
 */
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "victim.h"

static int zombie(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	printf("pid %d\n", (int)pid);
	victim_ready();
	while (!victim_stop)
		victim_sleep_ns(2000000);
	return victim_done(waitpid(pid, NULL, 0) == pid);
}

static int tracer(const char *pid)
{
	if (ptrace(PTRACE_SEIZE, atoi(pid), 0, 0) != 0) {
		perror("odd: seize");
		return 2;
	}
	victim_ready();
	while (!victim_stop)
		victim_sleep_ns(2000000);
	return victim_done(true); /* the end of a tracer lets go */
}

int main(int argc, char **argv)
{
	victim_catch_term();
	if (argc == 2 && strcmp(argv[1], "zombie") == 0)
		return zombie();
	if (argc == 3 && strcmp(argv[1], "tracer") == 0)
		return tracer(argv[2]);
	return 2;
}
