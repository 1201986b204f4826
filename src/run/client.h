/* SPDX-License-Identifier: MIT */
#ifndef SB_CLIENT_H
#define SB_CLIENT_H

#include "options.h"
#include "src/session/backend.h"
#include "src/session/launch.h"

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

/*
 * The same, driven step by step by whoever asks things of the session (control.h): a sweep. opened
 * when hooks are in force; NULL: they are not, out->error says why and all is as before. hold: a
 * command is kept at its start until client_release().
 */
struct client;
struct client *client_open(struct options *opt, const struct backend *backend, bool hold,
			   struct client_outcome *out);
int client_release(struct client *c);

/* A request and its answer, both JSON; the answer is valid until the next one. NULL: the session
 * has ended meanwhile. */
const char *client_ask(struct client *c, const char *request);

/* Handles what has come, waiting for it at most timeout_ms. False: the session has ended. */
bool client_pump(struct client *c, int timeout_ms);
bool client_interrupted(const struct client *c); /* Ctrl-C, SIGTERM, SIGHUP */

/* Ends the session: the hooks are out on return, and a command runs on. */
void client_detach(struct client *c);

/* Ends the session (if it has not ended itself), waits for a command, and fills *out. */
void client_close(struct client *c);

#endif
