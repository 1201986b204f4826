/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACER_H
#define SB_TRACER_H

#include "src/session/backend.h"

/*
 * The tracer: a process of its own, in its own session, without a terminal, so that nothing that
 * happens to the command line (Ctrl-Z, a stalled pager, a closed terminal) leaves a thread of the
 * target hanging. It ends by a clean detach: on request, when its work is done, or when the command
 * line is gone.
 */
struct tracer_job {
	const struct backend *backend;
	const struct session_config *cfg;
	uint64_t interval_ns; /* of status messages; 0: none */
	pid_t session_pid;    /* of the command line: it names the session */
	int events;	      /* where their lines are written (events.h); negative: none */
	uint64_t default_ns;  /* delay of targets that are added without one */
};

/* Forks. Returns the tracer's pid and the socket (wire.h) in *fd, or -1 with errno. */
pid_t tracer_start(const struct tracer_job *job, int *fd);

#endif
