/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "runtime.h"
#include "inject/clock.h"
#include "src/base/log.h"

enum { UNREAD_MAX = 64 << 10, CLIENTS = CONTROL_FDS - 1, BURST = 256, LAST_MS = 200 };

/* Time for one client's requests in one turn, ns: leases, forks and other clients wait
 * meanwhile. */
#define TURN_NS 5000000ull

/* An idle client loses its place to a new one after so many ns: soon if it has never sent a
 * request, later if it does not read answers, last if it has no more requests. */
#define SILENT_NS 100000000ull
#define DEAF_NS	  1000000000ull
#define IDLE_NS	  5000000000ull

struct peer {
	int fd; /* -1: free */
	char *in, *out;
	size_t in_len, out_len;
	bool asked;	    /* it has sent a whole line */
	uint64_t active_ns; /* time of its last request, of its last read of an answer, or of its
			       connect */
};

struct control_server {
	int fd;
	char path[300];
	struct peer peer[CLIENTS];
};

struct control_server *control_server_open(pid_t session, struct sb_err *err)
{
	struct control_server *srv = calloc(1, sizeof(*srv));
	char dir[256];

	if (!srv)
		abort();
	for (int i = 0; i < CLIENTS; i++)
		srv->peer[i].fd = -1;
	if (runtime_make(dir, sizeof(dir), err) == 0) {
		runtime_socket(dir, session, srv->path, sizeof(srv->path));
		srv->fd = runtime_listen(srv->path, CLIENTS, err);
		if (srv->fd >= 0)
			return srv;
	}
	free(srv);
	return NULL;
}

static void drop(struct peer *p)
{
	close(p->fd);
	free(p->in);
	free(p->out);
	*p = (struct peer){ .fd = -1 };
}

static bool may_ask(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (who.uid == geteuid() || who.uid == 0);
}

/* File modes keep other users out as a rule; a client that got past them gets the reason. */
static void turn_away(int fd)
{
	static const char line[] = "{\"ok\":false,\"error\":\"EPERM\",\"what\":\"this session is "
				   "another user's\"}\n";

	send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static bool is_idle(const struct peer *p, uint64_t now)
{
	int unread = 0;

	if (p->asked)
		return now - p->active_ns > (p->out_len ? DEAF_NS : IDLE_NS);
	/* A new client may have a request that was not read yet. */
	return now - p->active_ns > SILENT_NS && (ioctl(p->fd, FIONREAD, &unread) < 0 || !unread);
}

/* A free place, else the place of an idle client: one without a request first, then the one idle
 * for the longest time. NULL: none. */
static struct peer *place_for_one(struct control_server *srv)
{
	uint64_t now = clock_ns();
	struct peer *best = NULL;

	for (struct peer *p = srv->peer; p < srv->peer + CLIENTS; p++) {
		if (p->fd < 0)
			return p;
		if (is_idle(p, now) &&
		    (!best || p->asked < best->asked ||
		     (p->asked == best->asked && p->active_ns < best->active_ns)))
			best = p;
	}
	return best;
}

/* A client without a place waits in the socket's queue for one. */
static void welcome(struct control_server *srv)
{
	struct peer *p;
	int fd;

	while ((p = place_for_one(srv)) &&
	       (fd = accept4(srv->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (!may_ask(fd)) {
			turn_away(fd);
			continue;
		}
		if (p->fd >= 0)
			drop(p);
		*p = (struct peer){
			.fd = fd,
			.in = malloc(CONTROL_MAX_REQUEST),
			.active_ns = clock_ns(),
		};
		if (!p->in)
			abort();
	}
}

static bool flush(struct peer *p)
{
	while (p->out_len) {
		ssize_t n = send(p->fd, p->out, p->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		memmove(p->out, p->out + n, p->out_len - (size_t)n);
		p->out_len -= (size_t)n;
		p->active_ns = clock_ns();
	}
	return true;
}

static void reply(struct peer *p, const char *text)
{
	size_t len = strlen(text);

	p->out = realloc(p->out, p->out_len + len + 1);
	if (!p->out)
		abort();
	memcpy(p->out + p->out_len, text, len);
	p->out[p->out_len + len] = '\n';
	p->out_len += len + 1;
}

/* A client that does not read its answers gets no more of them for now. The limit is low, since
 * each answer costs us time. A single answer may exceed it. */
static bool has_room(const struct peer *p)
{
	return p->out_len < UNREAD_MAX;
}

/* Handles whole lines; a client with many requests takes turns with the events of the target. */
static void answer_lines(struct peer *p, struct control_state *state)
{
	uint64_t end_ns = clock_ns() + TURN_NS;
	size_t at = 0;

	for (int i = 0; i < BURST && has_room(p) && (!i || clock_ns() < end_ns); i++) {
		const char *line = p->in + at, *end = memchr(line, '\n', p->in_len - at);
		char *text;

		if (!end)
			break;
		p->asked = true;
		p->active_ns = clock_ns();
		text = control_answer(state, line, (size_t)(end - line));
		reply(p, text);
		free(text);
		at = (size_t)(end - p->in) + 1;
	}
	memmove(p->in, p->in + at, p->in_len - at);
	p->in_len -= at;
}

static bool has_line(const struct peer *p)
{
	return p->in_len && memchr(p->in, '\n', p->in_len);
}

static bool hear(struct peer *p)
{
	ssize_t n;

	if (p->in_len == CONTROL_MAX_REQUEST) /* lines that wait for their turn */
		return true;
	n = recv(p->fd, p->in + p->in_len, CONTROL_MAX_REQUEST - p->in_len, MSG_DONTWAIT);

	if (n > 0)
		p->in_len += (size_t)n;
	/* A line that fills the whole buffer will never end. */
	return n > 0 ? p->in_len < CONTROL_MAX_REQUEST || has_line(p) :
		       n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void serve(struct peer *p, short events, struct control_state *state)
{
	bool ok = true;

	if (events & (POLLIN | POLLHUP | POLLERR))
		ok = hear(p);
	answer_lines(p, state);
	if (!flush(p) || !ok)
		drop(p);
}

size_t control_server_poll(struct control_server *srv, struct pollfd *fds)
{
	size_t n = 0;

	if (!srv)
		return 0;
	fds[n++] = (struct pollfd){ .fd = place_for_one(srv) ? srv->fd : -1, .events = POLLIN };
	for (int i = 0; i < CLIENTS; i++) {
		const struct peer *p = &srv->peer[i];

		/* Do not read from a client whose output buffer is full. Serve a client with more
		 * lines at once. */
		fds[n++] = (struct pollfd){
			.fd = p->fd,
			.events = (short)((has_room(p) ? POLLIN : 0) |
					  (p->out_len || has_line(p) ? POLLOUT : 0)),
		};
	}
	return n;
}

void control_server_serve(struct control_server *srv, const struct pollfd *fds, size_t n,
			  struct control_state *state)
{
	for (size_t i = 1; srv && i < n; i++)
		if (fds[i].fd >= 0 && fds[i].revents && srv->peer[i - 1].fd == fds[i].fd)
			serve(&srv->peer[i - 1], fds[i].revents, state);
	if (srv && n && fds[0].revents)
		welcome(srv);
}

static void say_end(struct peer *p, const char *result_json)
{
	char *line = NULL;

	if (result_json && asprintf(&line, "{\"end\":%s}", result_json) > 0)
		reply(p, line);
	free(line);
}

void control_server_close(struct control_server *srv, const char *result_json)
{
	if (!srv)
		return;
	for (int i = 0; i < CLIENTS; i++) {
		struct peer *p = &srv->peer[i];
		struct pollfd fd = { .fd = p->fd, .events = POLLOUT };

		if (p->fd < 0)
			continue;
		say_end(p, result_json);
		while (p->out_len && poll(&fd, 1, LAST_MS) > 0)
			if (!flush(p))
				break;
		drop(p);
	}
	unlink(srv->path);
	close(srv->fd);
	free(srv);
}
