/* SPDX-License-Identifier: MIT */
/*
 * guard SECONDS COMMAND...: runs a test in a session of its own, as the subreaper of all that
 * it starts, for at most SECONDS. Whatever is left of its descendants is killed by pidfd: the
 * number of one that has ended may be a stranger's by then.
 *
 * GUARD_USAGE, where set, names a file that gets the seconds of processor time that all of it
 * took, as the kernel counts them: user and system, of every process that has ended.
 *
 * Status: the command's own; 124 after the time limit; 98 when the command passed but left
 * processes running (a tracer that does not end is a failure), which are named. After the time
 * limit the report also has where each of their threads is: what hangs once in a thousand runs is
 * not there to be looked at later.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCS = 8192, GRACE_MS = 3000 };

struct proc {
	pid_t pid, parent;
	char state;
	unsigned long long start; /* ticks since boot */
	bool ours;
	char comm[32];
};

static struct proc procs[MAX_PROCS];
static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	interrupted = sig;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool read_proc(const char *pid, struct proc *p)
{
	char path[64], line[512], *open, *close;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	len = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[len] = 0;
	open = strchr(line, '(');
	close = strrchr(line, ')');
	if (!open || !close)
		return false;
	p->pid = atoi(pid);
	snprintf(p->comm, sizeof(p->comm), "%.*s", (int)(close - open - 1), open + 1);
	p->ours = false;
	return sscanf(close + 1,
		      " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		      "%llu",
		      &p->state, &p->parent, &p->start) == 3;
}

/* All processes below this one; how many. */
static size_t descendants(void)
{
	struct dirent *entry;
	size_t n = 0, found = 0;
	bool again = true;
	DIR *dir = opendir("/proc");

	while (dir && n < MAX_PROCS && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && read_proc(entry->d_name, &procs[n]))
			n++;
	if (dir)
		closedir(dir);
	while (again) {
		again = false;
		for (size_t i = 0; i < n; i++) {
			bool below = procs[i].parent == getpid();

			for (size_t k = 0; k < n && !below; k++)
				below = procs[k].ours && procs[k].pid == procs[i].parent;
			if (below && !procs[i].ours) {
				procs[i].ours = again = true;
				found++;
			}
		}
	}
	for (size_t i = 0, k = 0; i < n; i++)
		if (procs[i].ours)
			procs[k++] = procs[i];
	return found;
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static size_t living(void)
{
	size_t n, alive = 0;

	reap_all();
	n = descendants();
	for (size_t i = 0; i < n; i++)
		if (procs[i].state != 'Z' && procs[i].state != 'X')
			procs[alive++] = procs[i];
	return alive;
}

/* Of the same number and the same start: it is the one that was seen, and the pidfd is its. */
static void kill_one(const struct proc *seen)
{
	int fd = (int)syscall(SYS_pidfd_open, seen->pid, 0);
	struct proc now_there;
	char name[24];

	snprintf(name, sizeof(name), "%d", (int)seen->pid);
	if (fd >= 0 && read_proc(name, &now_there) && now_there.start == seen->start)
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	if (fd >= 0)
		close(fd);
}

/* The first line of a file of this thread's, or nothing. */
static void show_line(pid_t pid, const char *tid, const char *name)
{
	char path[96], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", (int)pid, tid, name);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	if (f)
		fclose(f);
	fprintf(stderr, " %s %s;", name, line);
}

/* Its calls, if a debugger is installed and no one traces it. */
static void show_stacks(pid_t pid)
{
	char command[160], line[512];
	FILE *f;

	snprintf(command, sizeof(command),
		 "timeout 20 gdb -nx -batch -p %d -ex 'thread apply all bt 24' 2>&1", (int)pid);
	fflush(stderr);
	f = popen(command, "re"); /* NOLINT(cert-env33-c): a fixed command */
	while (f && fgets(line, sizeof(line), f))
		if (line[0] == '#' || !strncmp(line, "Thread", 6) || strstr(line, "ptrace"))
			fprintf(stderr, "guard:     %s", line);
	if (f)
		pclose(f);
}

static void show_where(const struct proc *p)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		fprintf(stderr, "guard:   thread %s:", entry->d_name);
		show_line(p->pid, entry->d_name, "stat");
		show_line(p->pid, entry->d_name, "wchan");
		show_line(p->pid, entry->d_name, "syscall");
		fputc('\n', stderr);
	}
	if (dir)
		closedir(dir);
	show_stacks(p->pid);
}

static void report_rest(bool where)
{
	static struct proc seen[MAX_PROCS];
	size_t n = living();

	memcpy(seen, procs, n * sizeof(*seen)); /* a debugger is one more descendant */
	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "guard: left running: %d (%s)\n", (int)seen[i].pid, seen[i].comm);
		if (where)
			show_where(&seen[i]);
	}
}

static void kill_rest(void)
{
	size_t n;

	for (int round = 0; (n = living()) > 0 && round < 500; round++) {
		for (size_t i = 0; i < n; i++)
			kill_one(&procs[i]);
		usleep(10000);
	}
}

/* What this has waited for, and what those had waited for: a subreaper's children are all of them.
 */
static void write_usage(void)
{
	const char *path = getenv("GUARD_USAGE");
	FILE *f = path ? fopen(path, "we") : NULL;
	struct rusage usage;

	if (!f)
		return;
	reap_all();
	getrusage(RUSAGE_CHILDREN, &usage);
	fprintf(f, "%.3f\n",
		(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	fclose(f);
}

/* Waits for the command; true if it ended by itself. */
static bool wait_for(pid_t child, double limit, int *status)
{
	double end = now() + limit;

	while (!interrupted && now() < end) {
		pid_t got = waitpid(-1, status, WNOHANG);

		if (got == child)
			return true;
		if (got <= 0)
			usleep(5000);
	}
	return false;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int status = 0, result;
	bool ended;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: guard SECONDS COMMAND...\n");
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	child = fork();
	if (child == 0) {
		setsid();
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	ended = wait_for(child, atof(argv[1]), &status);
	if (!ended) {
		fprintf(stderr, "guard: %s\n", interrupted ? "interrupted" : "time limit");
		report_rest(!interrupted);
		kill_rest();
		write_usage();
		return interrupted ? 128 + interrupted : 124;
	}
	result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	for (int ms = 0; living() > 0 && ms < GRACE_MS; ms += 20)
		usleep(20000);
	if (living() > 0 && result == 0)
		result = 98;
	if (result != 0)
		report_rest(false);
	kill_rest();
	write_usage();
	return result;
}
