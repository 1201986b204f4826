/* SPDX-License-Identifier: MIT */
#ifndef SB_PROBE_H
#define SB_PROBE_H

#include <stddef.h>

/*
 * What the kernel allows, tried on a child of sbinject: 0, or the errno of the refusal. No other
 * process is touched.
 */
struct probe {
	int trace;   /* PTRACE_SEIZE */
	int code;    /* writing to read-only pages of a traced process by /proc/PID/mem */
	int seccomp; /* PTRACE_O_SUSPEND_SECCOMP */
	size_t room; /* bytes that a remote call takes under the stack pointer; 0: unknown */
};

/* Made once, about a millisecond. */
const struct probe *probe_machine(void);

#endif
