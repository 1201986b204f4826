/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_SERVER_H
#define SB_CONTROL_SERVER_H

#include <poll.h>
#include "control.h"

/*
 * The socket of a running session. The tracer serves it between its other work. Requests and
 * answers (control.h) are lines. Nothing here blocks: unsent output is kept for a client up to a
 * limit. A client over the limit is dropped, and so is one that sends rubbish or belongs to another
 * user. If all places are taken, a new client replaces an idle one.
 */
struct control_server;

enum { CONTROL_FDS = 33 }; /* the socket and its clients */

/* The socket's name is the pid of the session's command line. NULL with the error: there is no
 * socket; a session runs without one. */
struct control_server *control_server_open(pid_t session, struct sb_err *err);

/* The entries to poll, at most CONTROL_FDS. */
size_t control_server_poll(struct control_server *srv, struct pollfd *fds);

/* Serves the entries that are ready. */
void control_server_serve(struct control_server *srv, const struct pollfd *fds, size_t n,
			  struct control_state *state);

/* Ends the service: sends {"end": RESULT} (NULL: nothing) and all kept output to every client, for
 * a moment at most, and removes the socket. */
void control_server_close(struct control_server *srv, const char *result_json);

#endif
