/* SPDX-License-Identifier: MIT */
#ifndef SB_FAULT_H
#define SB_FAULT_H

#include <stdbool.h>

/*
 * Named fault points: every step that changes a target passes one. In builds made for tests
 * (make FAULT=1) SBINJECT_FAULT=NAME[:N]=ACTION makes the Nth passage (1, the first, without
 * :N) fail, or kills: ACTION is error, kill-tracer, kill-client, kill-both, kill-target,
 * stop-target, exec-target or fork-target (the file SBINJECT_FAULT_GATE is made, for which a thread
 * of the target waits to exec or to fork; it gets 20 ms). SBINJECT_FAULT_LOG=FILE: each passage
 * writes its name there, what the target has mapped and which descriptors it has open. In ordinary
 * builds they cost nothing and cannot be reached.
 */
#ifdef SB_FAULT_POINTS
/* True: fail here. pid: the target's, for kill-target. */
bool fault_point(const char *name, int pid);
void fault_client(int pid); /* tells the tracer who the command line is */
#else
static inline bool fault_point(const char *name, int pid)
{
	(void)name;
	(void)pid;
	return false;
}
static inline void fault_client(int pid)
{
	(void)pid;
}
#endif

#endif
