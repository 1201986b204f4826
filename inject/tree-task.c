/* SPDX-License-Identifier: MIT */
#include "tree-task.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "src/base/caps.h"
#include "src/base/maps.h"

/* The number after "NAME:" in /proc/TID/status, or -1. */
static long status_field(pid_t tid, const char *name)
{
	char path[64], line[256];
	size_t len = strlen(name);
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			value = strtol(line + len + 1, NULL, 10);
	fclose(f);
	return value;
}

/*
 * The state and the parent in /proc/TID/stat, which takes the kernel less to write than status
 * does: the parents of all processes are read several times in a session. The name may have any
 * character.
 */
static char state_and_parent(pid_t tid, pid_t *parent)
{
	char path[64], text[512], state;
	const char *paren;
	ssize_t n;
	int fd;

	*parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 'X';
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	paren = strrchr(text, ')');
	return paren && sscanf(paren, ") %c %d", &state, parent) == 2 ? state : 'X';
}

static char task_state(pid_t tid)
{
	pid_t parent;

	return state_and_parent(tid, &parent);
}

pid_t task_tgid(pid_t tid)
{
	long v = status_field(tid, "Tgid");

	return v > 0 ? (pid_t)v : 0;
}

bool task_is_thread(pid_t pid, pid_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

pid_t task_parent(pid_t tid)
{
	pid_t parent;

	state_and_parent(tid, &parent);
	return parent;
}

bool task_read_ids(pid_t pid, struct task_ids *ids)
{
	uid_t *u = ids->uid, *g = ids->gid;
	char path[64], line[256];
	int found = 0;
	FILE *f;

	memset(ids, 0, sizeof(*ids));
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		found += sscanf(line, "Uid: %u %u %u %u", &u[0], &u[1], &u[2], &u[3]) == 4;
		found += sscanf(line, "Gid: %u %u %u %u", &g[0], &g[1], &g[2], &g[3]) == 4;
	}
	if (f)
		fclose(f);
	return found == 2;
}

bool task_is_user(pid_t pid, uid_t uid)
{
	struct task_ids ids;
	bool is = task_read_ids(pid, &ids);

	for (int i = 0; i < 4; i++)
		is &= ids.uid[i] == uid;
	return is;
}

/* Field 22 of /proc/PID/stat; the name before it may contain blanks, parentheses and line ends. */
uint64_t task_start(pid_t pid)
{
	unsigned long long start = 0;
	char path[64], text[1024];
	const char *rest;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1,
			    " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			    "%*d %*d %llu",
			    &start) != 1)
		return 0;
	return start;
}

bool task_sleeps(pid_t tid)
{
	return task_state(tid) == 'S';
}

uint64_t task_run_ns(pid_t tid)
{
	unsigned long long ns = 0, user = 0, system = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f) {
		fclose(f);
		return ns;
	}
	/* A kernel without that file has it in ticks, behind a name that may contain blanks. */
	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
		   &system) != 2)
		user = system = 0;
	fclose(f);
	return (user + system) * (1000000000ull / (unsigned long)sysconf(_SC_CLK_TCK));
}

bool task_in_kernel(pid_t tid)
{
	char state = task_state(tid);

	return state == 'D' || state == 'Z' || state == 'X';
}

bool task_is_dead(pid_t pid, pid_t tid)
{
	char state = task_state(tid);

	(void)pid;
	return state == 'Z' || state == 'X';
}

/* /proc/TID/syscall: "running", or "-1 SP PC" (in a fault), or "NR ARG... SP PC". */
static bool read_waits(pid_t tid, uint64_t *pc, bool *in_call)
{
	char path[64], line[256] = "";
	char *last = NULL;
	FILE *f;

	*pc = 0;
	if (task_state(tid) != 'D')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f))
		last = strrchr(line, ' ');
	fclose(f);
	if (last)
		*pc = strtoull(last + 1, NULL, 16);
	*in_call = strtol(line, NULL, 10) >= 0;
	return last != NULL;
}

bool task_waits(pid_t tid, uint64_t *pc, bool *in_call)
{
	return CAPS(read_waits(tid, pc, in_call));
}

bool task_ended(pid_t pid)
{
	return task_is_dead(pid, pid) && maps_face(pid) == pid;
}

/* Does a file below the cgroup file systems, for the cgroup at `path`, contain this text? */
static bool cgroup_says(const char *root, const char *path, const char *file, const char *text)
{
	char name[4352], line[256];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "/sys/fs/cgroup%s%s/%s", root, path, file);
	f = fopen(name, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, text, strlen(text));
	if (f)
		fclose(f);
	return found;
}

/*
 * Where the kernel reports it, the place where it waits identifies a frozen thread, whatever is
 * mounted.
 */
static bool waits_frozen(pid_t tid)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/wchan", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return !strcmp(line, "__refrigerator") || !strcmp(line, "do_freezer_trap");
}

bool task_frozen(pid_t pid)
{
	char name[64], line[4096];
	bool frozen = CAPS(waits_frozen(pid));
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
	f = fopen(name, "re");
	while (f && !frozen && fgets(line, sizeof(line), f)) {
		const char *path = strstr(line, ":/");

		line[strcspn(line, "\n")] = '\0';
		if (path && strstr(line, ":freezer:"))
			frozen = cgroup_says("/freezer", path + 1, "freezer.state", "FR");
		else if (path && !strncmp(line, "0::", 3))
			frozen = cgroup_says("", path + 1, "cgroup.events", "frozen 1") ||
				 cgroup_says("/unified", path + 1, "cgroup.events", "frozen 1");
	}
	if (f)
		fclose(f);
	return frozen;
}

bool task_locks_memory(pid_t pid)
{
	return status_field(pid, "VmLck") != 0;
}

bool task_seccomp(pid_t tid)
{
	return status_field(tid, "Seccomp") > 0;
}

int task_any_seccomp(pid_t pid)
{
	int strictest = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && strictest != 1 && (e = readdir(dir))) {
		long mode = isdigit((unsigned char)e->d_name[0]) ?
				    status_field((pid_t)strtol(e->d_name, NULL, 10), "Seccomp") :
				    0;

		if (mode > 0)
			strictest = (int)mode;
	}
	if (dir)
		closedir(dir);
	return strictest;
}

pid_t task_tracer(pid_t tid)
{
	long v = status_field(tid, "TracerPid");

	return v > 0 ? (pid_t)v : 0;
}

bool task_is_ours(pid_t tid)
{
	return status_field(tid, "TracerPid") == getpid();
}

bool task_shares_memory(pid_t a, pid_t b, bool guess)
{
	/* Two leaders that have ended share nothing at all, and would compare as equal. */
	long ret = CAPS(syscall(SYS_kcmp, maps_face(a), maps_face(b), KCMP_VM, 0, 0));

	return ret < 0 ? guess : ret == 0;
}

/* A signal mask from /proc/TID/status. */
static uint64_t status_mask(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

static bool read_status(pid_t tid, char *buf, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	fclose(f);
	return true;
}

/* Signals that would be discarded if the thread were not traced. */
static uint64_t ignored_signals(const char *status)
{
	uint64_t by_default = 1ull << (SIGCHLD - 1) | 1ull << (SIGCONT - 1) | 1ull << (SIGURG - 1) |
			      1ull << (SIGWINCH - 1);

	return status_mask(status, "SigIgn:") | (by_default & ~status_mask(status, "SigCgt:"));
}

static bool signal_waits(const char *status)
{
	uint64_t pending = status_mask(status, "SigPnd:") | status_mask(status, "ShdPnd:");

	return pending & ~status_mask(status, "SigBlk:") & ~ignored_signals(status);
}

bool task_signal_due(pid_t tid)
{
	char status[4096];

	return !read_status(tid, status, sizeof(status)) || signal_waits(status);
}

bool task_ignores(pid_t tid, int sig)
{
	char status[4096];

	return read_status(tid, status, sizeof(status)) && sig > 0 && sig <= 64 &&
	       (ignored_signals(status) >> (sig - 1) & 1);
}

bool task_signal_waits(pid_t tid, int sig)
{
	char status[8192];

	return read_status(tid, status, sizeof(status)) &&
	       (status_mask(status, "SigPnd:") >> (sig - 1) & 1);
}

bool task_blocks_all(uint64_t mask)
{
	uint64_t all = ~(1ull << (SIGTRAP - 1) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) |
			 3ull << (32 - 1));

	return (mask & all) == all;
}

/*
 * The unblocked signals of a mask that blocks everything: SIGKILL, SIGSTOP, libc's two, and a few
 * that a thread waits for.
 */
enum { MASK_HOLES = 8 };

const char *task_trap_unfit(pid_t pid)
{
	uint64_t trap = 1ull << (SIGTRAP - 1);
	const char *why = NULL;
	char path[64], status[8192];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !why && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		uint64_t blocked;

		if (tid <= 0 || !read_status(tid, status, sizeof(status)))
			continue;
		blocked = status_mask(status, "SigBlk:");
		if (status_mask(status, "SigCgt:") & trap)
			why = "it has a handler for SIGTRAP";
		else if (status_mask(status, "SigIgn:") & trap)
			why = "it ignores SIGTRAP";
		/*
		 * A thread that waits in sigtimedwait shows a mask without the signals that it
		 * waits for.
		 */
		else if ((blocked & trap) && __builtin_popcountll(~blocked) > MASK_HOLES)
			why = "it blocks SIGTRAP";
	}
	if (dir)
		closedir(dir);
	return why;
}

bool task_has_shadow_stack(pid_t pid)
{
	char status[8192];
	const char *line;
	char *end;

	if (!read_status(pid, status, sizeof(status)))
		return false;
	line = strstr(status, "_Thread_features:");
	if (!line)
		return false;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	return strstr(line, "shstk") != NULL;
}

static void task_name(pid_t pid, char *buf, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(buf, (int)size, f))
		snprintf(buf, size, "?");
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
}

bool task_is_tracer(pid_t pid)
{
	char name[64];

	if (pid <= 0 || task_is_dead(pid, pid))
		return false;
	task_name(pid, name, sizeof(name));
	return !strcmp(name, "sbinject-tracer");
}

static int yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = -1;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = -1;
	if (f)
		fclose(f);
	return scope;
}

static void permission_hint(struct sb_err *err)
{
	int scope = yama_scope();

	if (geteuid() == 0)
		err_hint(err, "in a container, start it with --cap-add SYS_PTRACE; under a strict "
			      "seccomp profile allow ptrace; or start the program by sbinject");
	else if (scope > 0)
		err_hint(err,
			 "run as root, give sbinject CAP_SYS_PTRACE, set "
			 "kernel.yama.ptrace_scope=0 (it is %d), or start the program by "
			 "sbinject: sbinject TARGET -- COMMAND",
			 scope);
	else
		err_hint(err, "run as root or as the process's own user, or give sbinject "
			      "CAP_SYS_PTRACE and CAP_DAC_OVERRIDE");
}

uint64_t task_limit(pid_t pid, const char *name)
{
	char path[64], line[256];
	uint64_t limit = UINT64_MAX;
	size_t len = strlen(name);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *value = line + len + strspn(line + len, " ");

		if (!strncmp(line, name, len) && isdigit((unsigned char)*value))
			limit = strtoull(value, NULL, 10);
	}
	if (f)
		fclose(f);
	return limit;
}

int task_no_permission(pid_t pid, struct sb_err *err)
{
	err_set(err, SB_EPERM, "process %d: not permitted to trace it, or to read its memory", pid);
	permission_hint(err);
	return -SB_EPERM;
}

int task_seize_error(pid_t pid, pid_t tid, struct sb_err *err)
{
	long tracer = status_field(tid, "TracerPid");
	char name[64];

	if (tracer > 0) {
		task_name((pid_t)tracer, name, sizeof(name));
		err_set(err, SB_ETRACED, "process %d is traced already, by %s (pid %ld)", pid, name,
			tracer);
		err_hint(err, "end %s or detach it from %d first", name, pid);
		return -SB_ETRACED;
	}
	return task_no_permission(pid, err);
}
