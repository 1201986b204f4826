/* SPDX-License-Identifier: MIT */
#include "preview.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "launch.h"
#include "inject/memory.h"
#include "inject/ptrace.h"
#include "src/base/caps.h"

enum { STOPS = 100000, STOP_US = 10000000 };

/* AT_ENTRY of the auxiliary vector: where the dynamic linker jumps at its end. */
static uint64_t entry_point(pid_t pid)
{
	uint64_t pair[2], entry = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = CAPS(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return 0;
	while (!entry && read(fd, pair, sizeof(pair)) == sizeof(pair))
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	close(fd);
	return entry;
}

/* The command will never continue, so a breakpoint may simply be written. */
static int break_at_entry(pid_t pid, struct sb_err *err)
{
	uint64_t entry = entry_point(pid);
	struct memory mem;
	int ret;

	if (!entry || memory_open(&mem, pid, err) < 0)
		return err_set(err, SB_ETARGET, "the command has no entry point");
	ret = memory_write(&mem, entry, arch->trap_insn, arch->trap_len, err);
	memory_close(&mem);
	return ret;
}

static int run_to_entry(pid_t pid, struct sb_err *err)
{
	struct stop stop;
	int ret = 0;

	for (int i = 0; i < STOPS && pt_wait(pid, &stop, STOP_US); i++) {
		if (stop.kind == STOP_GONE)
			break;
		if (stop.kind == STOP_SIGNAL && stop.sig == SIGTRAP)
			return 0;
		if (stop.kind == STOP_EXEC)
			ret = break_at_entry(pid, err);
		if (ret < 0)
			return ret;
		pt_cont(pid, stop.kind == STOP_SIGNAL ? stop.sig : 0);
	}
	return err_set(err, SB_ETARGET, "the command ended before its entry point");
}

int preview_start(char *const *command, pid_t *pid, struct sb_err *err)
{
	struct launch l;
	sigset_t chld;
	int ret;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	ret = launch_start(&l, command, false, err); /* its parent traces it */
	if (ret < 0)
		return ret;
	*pid = l.pid;
	sigprocmask(SIG_BLOCK, &chld, NULL);
	ret = pt_seize(l.pid);
	if (ret < 0)
		ret = err_set(err, SB_EPERM, "the command cannot be traced");
	else
		ret = launch_go(&l, 0, err);
	if (ret == 0)
		ret = run_to_entry(l.pid, err);
	if (ret < 0)
		preview_end(l.pid);
	return ret;
}

void preview_end(pid_t pid)
{
	struct stop stop;

	kill(pid, SIGKILL);
	while (pt_wait(pid, &stop, STOP_US) && stop.kind != STOP_GONE)
		pt_cont(pid, 0);
	waitpid(pid, NULL, 0);
}
