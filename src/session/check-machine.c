/* SPDX-License-Identifier: MIT */
/* Checks of the machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include "check.h"
#include "inject/arch/arch.h"
#include "inject/probe.h"

/* PTRACE_SEIZE of no process: ESRCH if the system call is permitted, else EPERM or ENOSYS. */
int check_ptrace(struct sb_err *err)
{
	if (ptrace(PTRACE_SEIZE, -1, 0, 0) < 0 && (errno == ENOSYS || errno == EPERM)) {
		err_sys(err, SB_EPERM, "ptrace is not available");
		err_hint(err, "in a container, start it with --cap-add SYS_PTRACE and a seccomp "
			      "profile that allows ptrace");
		return -SB_EPERM;
	}
	return 0;
}

static int look_inject(const struct check_on *on, struct sb_err *err)
{
	const struct probe *probe = probe_machine();
	int ret = check_ptrace(err);

	(void)on;
	if (ret < 0 || !probe->trace)
		return ret;
	errno = probe->trace;
	err_sys(err, SB_EPERM, "sbinject cannot trace even a child of its own");
	err_hint(err, "another program traces sbinject, or a seccomp profile forbids ptrace");
	return -SB_EPERM;
}

/* If /proc belongs to another pid namespace, our pids name other processes there. */
static int look_proc(const struct check_on *on, struct sb_err *err)
{
	char link[32];
	ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);

	(void)on;
	link[n > 0 ? n : 0] = '\0';
	if (strtol(link, NULL, 10) == getpid())
		return 0;
	if (n <= 0)
		err_set(err, SB_ECONFINED, "/proc is not mounted");
	else
		err_set(err, SB_ECONFINED, "/proc is that of another pid namespace");
	err_hint(err, "mount the right one: mount -t proc proc /proc");
	return -SB_ECONFINED;
}

static int look_code(const struct check_on *on, struct sb_err *err)
{
	const struct probe *probe = probe_machine();

	(void)on;
	if (probe->trace || !probe->code)
		return 0;
	errno = probe->code;
	err_sys(err, SB_EPERM, "code cannot be written by /proc/PID/mem");
	err_hint(err, "boot without proc_mem.force_override=never");
	return -SB_EPERM;
}

static int look_same_user(const struct check_on *on, struct sb_err *err)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	(void)on;
	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	if (scope == 0 || (geteuid() == 0 && scope < 3))
		return 0;
	err_set(err, SB_EPERM, "kernel.yama.ptrace_scope is %d", scope);
	err_hint(err, scope < 3 ? "run as root, or launch the program by sbinject" :
				  "only a reboot can change it");
	return -SB_EPERM;
}

static int look_confined(const struct check_on *on, struct sb_err *err)
{
	const struct probe *probe = probe_machine();

	(void)on;
	if (probe->trace || !probe->seccomp)
		return 0;
	errno = probe->seccomp;
	err_sys(err, SB_ECONFINED, "seccomp filters cannot be suspended");
	err_hint(err, probe->seccomp == EINVAL ?
			      "a kernel with CONFIG_CHECKPOINT_RESTORE can" :
			      "run as root (CAP_SYS_ADMIN), not confined by seccomp itself");
	return -SB_ECONFINED;
}

static int look_clock(const struct check_on *on, struct sb_err *err)
{
	char why[160];

	(void)on;
	if (arch->clock_trusted(why, sizeof(why)))
		return 0;
	err_set(err, SB_ECLOCK, "%s", why);
	err_hint(err, "counting (delay 0) works; a machine with a stable TSC is needed for delays");
	return -SB_ECLOCK;
}

static int look_thread_pointer(const struct check_on *on, struct sb_err *err)
{
	(void)on;
	if (arch->thread_pointer_readable())
		return 0;
	err_set(err, SB_ESYS, "programs may not read their FS base");
	err_hint(err, "Linux 5.9 or later allows it; until then thread= is refused and counting "
		      "takes a few ns more");
	return -SB_ESYS;
}

const struct check check_machine_rows[] = {
	{ "backend inject (ptrace)", look_inject, true },
	{ "/proc of this namespace", look_proc, true },
	{ "writing code", look_code, true },
	{ "processes of the same user", look_same_user, false },
	{ "processes under seccomp", look_confined, false },
	{ "delays (TSC)", look_clock, false },
	{ "thread= (FS base)", look_thread_pointer, false },
};
const size_t check_machine_count = sizeof(check_machine_rows) / sizeof(*check_machine_rows);

int check_machine_first(struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < check_machine_count && ret == 0; i++)
		if (check_machine_rows[i].first)
			ret = check_machine_rows[i].look(NULL, err);
	return ret;
}
