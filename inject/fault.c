/* SPDX-License-Identifier: MIT */
#include "fault.h"

#ifdef SB_FAULT_POINTS
#include <dirent.h>
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
 * Opens the file that a thread of the target waits for before it execs or forks. A signal is no
 * alternative: its delivery is a stop that waits for this tracer. So the exec or fork happens at
 * once, unless that thread is held.
 */
static void open_gate(void)
{
	const char *path = secure_getenv("SBINJECT_FAULT_GATE");
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
	if (!strcmp(action, "exec-target") || !strcmp(action, "fork-target") ||
	    !strcmp(action, "stall"))
		open_gate();
	if (!strcmp(action, "stall"))
		nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	if (strcmp(action, "kill-tracer") && client_pid > 0 && !strncmp(action, "kill", 4) &&
	    strcmp(action, "kill-target"))
		kill(client_pid, SIGKILL);
	if (!strcmp(action, "kill-tracer") || !strcmp(action, "kill-both"))
		kill(getpid(), SIGKILL);
}

static void copy(FILE *to, const char *path)
{
	char line[4096];
	FILE *from = fopen(path, "re");

	while (from && fgets(line, sizeof(line), from))
		fputs(line, to);
	if (from)
		fclose(from);
}

static void log_fds(FILE *to, int pid)
{
	char path[400], link[256];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		fprintf(to, "fd %s %s\n", e->d_name, link);
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, e->d_name);
		copy(to, path);
	}
	if (dir)
		closedir(dir);
}

static void log_passage(const char *name, int pid)
{
	const char *to = secure_getenv("SBINJECT_FAULT_LOG");
	FILE *f = to ? fopen(to, "ae") : NULL;
	char path[64];

	if (!f)
		return;
	fprintf(f, "point %s\n", name);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	copy(f, path);
	log_fds(f, pid);
	fclose(f);
}

void stall_point(const char *name)
{
	fault_point(name, 0);
}

bool fault_point(const char *name, int pid)
{
	static int passed;
	const char *want = secure_getenv("SBINJECT_FAULT");
	size_t len = strlen(name);
	const char *rest;
	int nth = 1;

	if (client_pid)
		log_passage(name, pid);
	/* Only in the tracer: the command line's restore after the tracer's death must not fail. */
	if (!client_pid || !want || strncmp(want, name, len) ||
	    (want[len] != '=' && want[len] != ':'))
		return false;
	rest = want + len;
	if (*rest == ':')
		nth = (int)strtol(rest + 1, (char **)&rest, 10);
	if (*rest != '=' || (nth && ++passed != nth))
		return false;
	if (!strcmp(rest + 1, "error"))
		return true;
	fault_kill(rest + 1, pid);
	return false;
}
#endif
