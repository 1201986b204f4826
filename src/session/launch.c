/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "elf/image.h"
#include "inject/ptrace.h"
#include "src/base/caps.h"
#include "src/base/text.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

static int refuse(const char *name, int why, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];

	text_quote(name, shown, sizeof(shown));
	if (why == ENOENT || why == ENOTDIR) {
		err_set(err, SB_ENOCMD, "%s: command not found", shown);
		return -SB_ENOCMD;
	}
	errno = why;
	return err_sys(err, SB_ENOEXEC, "%s: cannot be executed", shown);
}

/* Damaged programs are refused here: execvp would pass them to a shell as scripts. */
static bool damaged_program(const char *path)
{
	struct sb_err ignored = { 0 };
	char magic[4] = "";
	struct image *img;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool elf = fd >= 0 && read(fd, magic, 4) == 4 && !memcmp(magic, "\177ELF", 4);

	if (fd >= 0)
		close(fd);
	if (!elf)
		return false;
	if (image_get(path, path, &img, &ignored) < 0)
		return true;
	image_put(img);
	return false;
}

/* 0, or the errno that exec would return. */
static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return EACCES;
	return damaged_program(path) ? ENOEXEC : 0;
}

static int search_path(const char *name)
{
	const char *path = caps_env("PATH"), *end;
	char file[4096];
	int why = ENOENT, ret;

	for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;
	     path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		if (snprintf(file, sizeof(file), "%.*s/%s", (int)(end - path),
			     end == path ? "." : path, name) >= (int)sizeof(file))
			continue;
		ret = try_path(file);
		if (!ret)
			return 0;
		if (ret == EACCES || ret == ENOEXEC)
			why = ret;
	}
	return why;
}

int launch_check(char *const *command, struct sb_err *err)
{
	int why;

	if (!command[0] || !command[0][0]) {
		err_set(err, SB_EUSAGE, "there is no command after --");
		return -SB_EUSAGE;
	}
	why = strchr(command[0], '/') ? try_path(command[0]) : search_path(command[0]);
	return why ? refuse(command[0], why, err) : 0;
}

/* The child waits at the gate. If sbinject ends before the gate opens, the command never runs. */
static void child(char *const *command, bool target, int gate, int report, const sigset_t *mask)
{
	pid_t tracer;
	int why = 0;

	if (target)
		prctl(PR_SET_PTRACER, (unsigned long)getppid());
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (write(report, &why, sizeof(why)) < 0 || /* the tracer may attach now */
	    read(gate, &tracer, sizeof(tracer)) != (ssize_t)sizeof(tracer))
		_exit(125);
	if (target)
		prctl(PR_SET_PTRACER, (unsigned long)tracer);
	close(gate);
	execvp(command[0], command);
	why = errno;
	if (write(report, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(why == ENOENT ? 127 : 126);
}

/* The next report: 0, the errno of an exec that failed, or -1 at its end. */
static int next_report(const struct launch *l)
{
	ssize_t n;
	int why;

	do
		n = read(l->report, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(why) ? why : -1;
}

int launch_start(struct launch *l, char *const *command, bool target, struct sb_err *err)
{
	sigset_t none, old;
	int gate[2], report[2];

	memset(l, 0, sizeof(*l));
	if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		return err_sys(err, SB_ESYS, "pipe");
	sigemptyset(&none);
	sigprocmask(SIG_BLOCK, &none, &old);
	l->pid = fork();
	if (l->pid == 0) {
		close(gate[1]);
		close(report[0]);
		child(command, target, gate[0], report[1], &old);
	}
	pt_child(l->pid); /* the command line traces it, where it has to restore it */
	close(gate[0]);
	close(report[1]);
	l->gate = gate[1];
	l->report = report[0];
	if (l->pid < 0)
		return err_sys(err, SB_ESYS, "fork");
	next_report(l); /* a child that ended before its wait is noticed later */
	return 0;
}

int launch_go(struct launch *l, pid_t tracer, struct sb_err *err)
{
	int why;

	if (write(l->gate, &tracer, sizeof(tracer)) < 0)
		return err_sys(err, SB_ESYS, "the command ended before it began");
	close(l->gate);
	why = next_report(l);
	close(l->report);
	return why > 0 ? refuse("the command", why, err) : 0;
}

void launch_abandon(struct launch *l)
{
	close(l->gate);
	close(l->report);
	kill(l->pid, SIGKILL);
}

/* Where this process is its tracer, too, a wait would also take stops: these are left to that. */
static bool takes_end(pid_t pid, int *status)
{
	siginfo_t si = { 0 };

	if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		return errno == ECHILD && pt_child_ended(status);
	if (si.si_code != CLD_EXITED && si.si_code != CLD_KILLED && si.si_code != CLD_DUMPED)
		return false;
	return waitpid(pid, status, WNOHANG) == pid;
}

bool launch_poll(struct launch *l)
{
	int status;

	if (!l->pid || l->ended)
		return l->ended;
	if (takes_end(l->pid, &status)) {
		l->ended = true;
		l->status = status;
	}
	return l->ended;
}

int launch_exit_status(const struct launch *l)
{
	if (WIFSIGNALED(l->status))
		return 128 + WTERMSIG(l->status);
	return WEXITSTATUS(l->status);
}
