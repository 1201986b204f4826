/* SPDX-License-Identifier: MIT */
#ifndef SB_CLIENT_H
#define SB_CLIENT_H

#include "options.h"
#include "src/session/backend.h"
#include "src/session/launch.h"
#include "trace/event.h"

/*
 * The command line's half of a run. It starts the tracer, passes on what the user does (signals,
 * the end of a command) and prints what the tracer sends. If the tracer dies it restores the
 * targets itself.
 */
struct kernels;
struct devices;
struct client_outcome {
	struct result *result; /* NULL: there is none, see error */
	enum session_end end;
	struct sb_err error; /* code SB_OK: none */
	bool tracer_died;
	bool has_command;
	bool traced;		  /* calls were recorded in a file, and ... */
	struct trace_end trace;	  /* ... so many */
	struct kernels *launches; /* ... with these launches, for the caller; NULL: none can be */
	struct devices *devices;  /* ... and what devices ran meanwhile, the same; NULL: nothing */
	int command_status;	  /* its exit status, if there was a command */
};

/* Runs to the end. opt->command is hooked itself if there are no pids. */
void client_run(struct options *opt, const struct backend *backend, struct client_outcome *out);

/*
 * The same in single steps, for a caller with requests to the session (control.h): a sweep. Returns
 * when hooks are in force; NULL: they are not, out->error has the reason, and nothing is changed.
 * hold: keeps a command at its start until client_release().
 */
struct client;
struct client *client_open(struct options *opt, const struct backend *backend, bool hold,
			   struct client_outcome *out);
int client_release(struct client *c); /* as launch_go(); 0 without a command */

/* Sends a request and returns its answer, both JSON; valid until the next request. NULL: the
 * session has ended meanwhile. */
const char *client_ask(struct client *c, const char *request);

/* Handles messages, and waits for one at most timeout_ms. False: the session has ended. */
bool client_pump(struct client *c, int timeout_ms);
bool client_interrupted(const struct client *c); /* Ctrl-C, SIGTERM, SIGHUP */

/* Ends the session: the hooks are removed on return; a command continues. */
void client_detach(struct client *c);

/* Ends the session (unless it has ended), waits for a command, and fills *out. */
void client_close(struct client *c);

#endif
