/* SPDX-License-Identifier: MIT */
#ifndef SB_FAULT_H
#define SB_FAULT_H

#include <stdbool.h>

/*
 * Named fault points: every step that changes a target passes one. In builds for tests (make
 * FAULT=1) SBINJECT_FAULT=NAME[:N]=ACTION makes the Nth passage (1, the first, without :N; 0,
 * each) fail or act: ACTION is error, kill-tracer, kill-client, kill-both, kill-target,
 * stop-target, exec-target or fork-target. The last two create the file SBINJECT_FAULT_GATE, which
 * a thread of the target waits for before it execs or forks, and give it 20 ms.
 * SBINJECT_FAULT_LOG=FILE: each passage writes its name, the target's mappings and the target's
 * open descriptors there. In ordinary builds fault points cost nothing and are not compiled in.
 *
 * Stall points are places where the tracer may lose its processor at a bad time: NAME[:N]=stall
 * makes it sleep there for 300 ms, and creates SBINJECT_FAULT_GATE first, where that is set.
 */
#ifdef SB_FAULT_POINTS
/* True: fail here. pid: the target's, for the actions on the target. */
bool fault_point(const char *name, int pid);
void stall_point(const char *name);
void fault_client(int pid); /* sets the process of the command line, for kill-client */
#else
static inline bool fault_point(const char *name, int pid)
{
	(void)name;
	(void)pid;
	return false;
}
static inline void stall_point(const char *name)
{
	(void)name;
}
static inline void fault_client(int pid)
{
	(void)pid;
}
#endif

#endif
