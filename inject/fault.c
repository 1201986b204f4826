/* SPDX-License-Identifier: MIT */
#include "fault.h"

#ifdef SB_FAULT_POINTS
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int client_pid;

void fault_client(int pid)
{
	client_pid = pid;
}

/*
 * A thread of the target waits for this file, to exec. A signal would not do: its delivery is a
 * stop that waits for us. So the exec happens here and now, unless that thread is held.
 */
static void open_gate(void)
{
	const char *path = getenv("SBINJECT_FAULT_GATE");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (fd >= 0)
		close(fd);
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static void fault_kill(const char *action, int pid)
{
	if (!strcmp(action, "kill-target") && pid > 0)
		kill(pid, SIGKILL);
	if (!strcmp(action, "stop-target") && pid > 0)
		kill(pid, SIGSTOP);
	if (!strcmp(action, "exec-target"))
		open_gate();
	if (strcmp(action, "kill-tracer") && client_pid > 0 && !strncmp(action, "kill", 4) &&
	    strcmp(action, "kill-target"))
		kill(client_pid, SIGKILL);
	if (!strcmp(action, "kill-tracer") || !strcmp(action, "kill-both"))
		kill(getpid(), SIGKILL);
}

bool fault_point(const char *name, int pid)
{
	static int passed;
	const char *want = getenv("SBINJECT_FAULT");
	size_t len = strlen(name);
	const char *rest;
	int nth = 1;

	/* Only in the tracer: what the command line restores after its death is not to fail. */
	if (!client_pid || !want || strncmp(want, name, len) ||
	    (want[len] != '=' && want[len] != ':'))
		return false;
	rest = want + len;
	if (*rest == ':')
		nth = (int)strtol(rest + 1, (char **)&rest, 10);
	if (*rest != '=' || ++passed != nth)
		return false;
	if (!strcmp(rest + 1, "error"))
		return true;
	fault_kill(rest + 1, pid);
	return false;
}
#endif
