/* SPDX-License-Identifier: MIT */
#ifndef SB_CLIENT_H
#define SB_CLIENT_H

#include "backend.h"
#include "launch.h"
#include "options.h"

/*
 * The command line's half of a run: starts the tracer, passes on what the user does (signals,
 * the end of a command) and shows what the tracer says. If the tracer dies it restores the
 * targets itself.
 */
struct client_outcome {
	struct result *result; /* NULL: there is none, see error */
	enum session_end end;
	struct sb_err error; /* code SB_OK: none */
	bool tracer_died;
	bool has_command;
	int command_status; /* exit status of the command, if there was one */
};

/* Runs to the end. opt->command is hooked itself unless there are pids. */
void client_run(struct options *opt, const struct backend *backend, struct client_outcome *out);

#endif
