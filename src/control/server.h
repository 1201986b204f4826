/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_SERVER_H
#define SB_CONTROL_SERVER_H

#include <poll.h>
#include "control.h"

/*
 * The socket of a running session, served by the tracer between its other work. Requests and
 * answers (control.h) are lines. Nothing here blocks: what a client does not take is kept for it up
 * to a limit, and one that is over it, sends rubbish or belongs to another user is dropped. Where
 * all places are taken, one that does nothing with its own loses it to the next who comes.
 */
struct control_server;

enum { CONTROL_FDS = 33 }; /* the socket and its clients */

/* Named by the pid of the session's command line. NULL with the error: there is no socket, which
 * no session needs. */
struct control_server *control_server_open(pid_t session, struct sb_err *err);

/* What to poll for; at most CONTROL_FDS entries. */
size_t control_server_poll(struct control_server *srv, struct pollfd *fds);

/* Serves what those say is there. */
void control_server_serve(struct control_server *srv, const struct pollfd *fds, size_t n,
			  struct control_state *state);

/* The session is over: sends {"end": RESULT} (NULL: nothing) to everybody and what is kept, within
 * a moment, and removes the socket. */
void control_server_close(struct control_server *srv, const char *result_json);

#endif
