/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ptrace.h"
#include "remote.h"
#include "tree-task.h"
#include "src/base/caps.h"

enum { SEIZE_TRIES = 20 };

/* Writes to text that every fork of sbinject has. */
static int probe_code(pid_t child)
{
	off_t at = (off_t)(uintptr_t)&probe_machine;
	int fd, error = 0;
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	fd = CAPS(open(path, O_RDWR | O_CLOEXEC));
	if (fd < 0)
		return errno;
	if (pread(fd, &byte, 1, at) != 1 || pwrite(fd, &byte, 1, at) != 1)
		error = errno ? errno : EIO;
	close(fd);
	return error;
}

/* The size of a frame is the same for all threads of a machine, except for tiles in use. */
static size_t probe_room(pid_t child)
{
	struct arch_gadgets gadgets = { .syscall = 1, .sigreturn = 1 };
	size_t len = ARCH_XSTATE_MAX;
	uint8_t *xstate = malloc(ARCH_XSTATE_MAX), *frame = malloc(ARCH_FRAME_MAX);
	struct arch_regs regs;
	uint64_t sp = 0;
	size_t room = 0;

	if (xstate && frame && pt_get_regs(child, &regs) == 0 &&
	    pt_get_xstate(child, xstate, &len) == 0 &&
	    arch->build_frame(&regs, xstate, len, 0, &gadgets, frame, ARCH_FRAME_MAX, &sp))
		/* It depends on the alignment of the stack pointer: this is the worst case. */
		room = ((arch->sp(&regs) - sp + REMOTE_SCRATCH) | 63) + 65;
	free(xstate);
	free(frame);
	return room;
}

static void probe_stopped(pid_t child, struct probe *out)
{
	int status;

	pt_interrupt(child);
	if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) {
		out->trace = ECHILD;
		return;
	}
	out->code = probe_code(child);
	out->seccomp = -pt_suspend_seccomp(child, true);
	out->room = probe_room(child);
}

static void probe_child(pid_t child, struct probe *out)
{
	/* Busy: the child was too slow for the timeout, on a loaded machine. */
	for (int i = 0; i < SEIZE_TRIES; i++) {
		out->trace = -pt_seize(child);
		if (out->trace != EBUSY)
			break;
	}
	if (out->trace == EPERM && task_is_ours(child))
		out->trace = 0; /* the try before had succeeded */
	if (out->trace == EBUSY)
		out->trace = 0; /* no refusal; the rest stays unknown */
	else if (!out->trace)
		probe_stopped(child, out);
}

/* The child is made traceable, unlike the tracer (PR_SET_DUMPABLE), before it is tried. */
static pid_t fork_child(void)
{
	pid_t child, parent = getpid();
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* the parent was killed before the prctl() */
			_exit(0);
		prctl(PR_SET_DUMPABLE, 1);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (child > 0 && read(ready[0], &byte, 1) < 0) /* until the child closes its end */
		errno = 0;
	close(ready[0]);
	return child;
}

const struct probe *probe_machine(void)
{
	static struct probe probe;
	static bool done;
	pid_t child;

	if (done)
		return &probe;
	done = true;
	child = fork_child();
	if (child < 0) {
		probe.trace = errno;
		return &probe;
	}
	probe_child(child, &probe);
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	return &probe;
}
