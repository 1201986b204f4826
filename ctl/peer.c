/* SPDX-License-Identifier: MIT */
#include "ctl.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "src/base/text.h"
#include "src/control/runtime.h"

enum { ANSWER_MS = 10000, LINE_MAX_BYTES = 64 << 20 };

struct ctl_peer {
	int fd;		  /* of a session; -1: the kernel module */
	const char *kmod; /* its directory */
	char *in;
	size_t len, cap;
};

static struct ctl_peer *peer_new(int fd, const char *kmod)
{
	struct ctl_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		abort();
	peer->fd = fd;
	peer->kmod = kmod;
	return peer;
}

void ctl_close(struct ctl_peer *peer)
{
	if (!peer)
		return;
	if (peer->fd >= 0)
		close(peer->fd);
	free(peer->in);
	free(peer);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The time left until then; -1: no limit. */
static int left_ms(int64_t until)
{
	int64_t left = until - now_ms();

	return until < 0 ? -1 : left > 0 ? (int)left : 0;
}

/*
 * The next line, without its newline. NULL: the other end is gone, takes too long for the whole
 * line, or sends more than a session ever does. The peer may belong to another user.
 */
static char *read_line(struct ctl_peer *peer, int timeout_ms)
{
	int64_t until = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;

	for (;;) {
		char *end = peer->len ? memchr(peer->in, '\n', peer->len) : NULL;
		struct pollfd fd = { .fd = peer->fd, .events = POLLIN };
		ssize_t n;

		if (end) {
			char *line = strndup(peer->in, (size_t)(end - peer->in));
			size_t used = (size_t)(end - peer->in) + 1;

			memmove(peer->in, peer->in + used, peer->len - used);
			peer->len -= used;
			return line;
		}
		if (peer->cap - peer->len < 65536) {
			peer->cap += 131072;
			peer->in = realloc(peer->in, peer->cap);
			if (!peer->in)
				abort();
		}
		if (peer->len > LINE_MAX_BYTES || poll(&fd, 1, left_ms(until)) <= 0)
			return NULL;
		n = recv(peer->fd, peer->in + peer->len, peer->cap - peer->len, 0);
		if (n <= 0)
			return NULL;
		peer->len += (size_t)n;
	}
}

static bool send_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

static json_t *ask_session(struct ctl_peer *peer, const json_t *request)
{
	char *text = json_document(request, false), *line = NULL;
	json_t *answer = NULL;

	/* What it sent before it hung up is its answer, too. */
	if (send_all(peer->fd, text, strlen(text)))
		send_all(peer->fd, "\n", 1);
	line = read_line(peer, ANSWER_MS);
	if (line)
		answer = json_loads(line, 0, NULL);
	free(line);
	free(text);
	return answer;
}

json_t *ctl_ask(struct ctl_peer *peer, json_t *request, struct sb_err *err, char error[16])
{
	json_t *answer = peer->kmod ? ctl_kmod_ask(peer->kmod, request) :
				      ask_session(peer, request);
	char *what, *hint;
	const char *name;

	json_decref(request);
	if (answer && json_is_true(json_object_get(answer, "ok")))
		return answer;
	name = json_string_value(json_object_get(answer, "error"));
	what = json_name_of(answer, "what");
	hint = json_name_of(answer, "hint");
	snprintf(error, 16, "%s", name ? name : "EIO");
	err_set(err, SB_ESYS, "%s",
		what ? what : "the session has ended, or does not answer within ten seconds");
	err_hint(err, "%s", hint ? hint : "");
	free(what);
	free(hint);
	json_decref(answer);
	return NULL;
}

json_t *ctl_wait_end(struct ctl_peer *peer)
{
	char *line = peer->fd >= 0 ? read_line(peer, -1) : NULL;
	json_t *end = line ? json_loads(line, 0, NULL) : NULL, *result;

	free(line);
	result = json_incref(json_object_get(end, "end"));
	json_decref(end);
	return result;
}

char *ctl_shown(const json_t *answer, const char *key)
{
	char *bytes = json_name_of(answer, key), *shown = text_show(bytes);

	free(bytes);
	return shown;
}

/* ---- the choice of a peer ---- */

/* Anyone may have put sockets into a directory of another user; root looks where the user points
 * it. */
static bool may_look(const char *dir, struct sb_err *err)
{
	struct sb_err why = { 0 };

	if (geteuid() == 0 || runtime_check(dir, geteuid(), &why) != -SB_EPERM)
		return true;
	*err = why;
	return false;
}

static struct ctl_peer *open_session(const char *dir, pid_t session)
{
	char path[256];
	int fd = runtime_connect(runtime_socket(dir, session, path, sizeof(path)));

	return fd < 0 ? NULL : peer_new(fd, NULL);
}

static bool has_hooked(struct ctl_peer *peer, pid_t pid)
{
	struct sb_err ignored = { 0 };
	char error[16];
	json_t *answer = ctl_ask(peer, json_pack("{s:s}", "op", "status"), &ignored, error), *one;
	bool found = false;
	size_t i;

	/* A session in a container uses our numbers for other processes. */
	if (json_integer_value(json_object_get(answer, "pid_namespace")) ==
	    (json_int_t)runtime_namespace())
		json_array_foreach(json_object_get(answer, "pids"), i, one)
			found |= json_integer_value(one) == pid;
	json_decref(answer);
	return found;
}

static struct ctl_peer *find(const char *dir, pid_t wanted, size_t *running)
{
	struct ctl_peer *found = wanted ? open_session(dir, wanted) : NULL;
	pid_t *sessions;
	size_t n = runtime_sessions(dir, &sessions);

	*running = 0;
	for (size_t i = 0; i < n && !found; i++) {
		struct ctl_peer *peer = open_session(dir, sessions[i]);

		if (!peer)
			continue;
		++*running;
		if (wanted ? has_hooked(peer, wanted) : n == 1)
			found = peer;
		else
			ctl_close(peer);
	}
	/* Some sockets are dead, and one session lives. */
	for (size_t i = 0; i < n && !found && !wanted && *running == 1; i++)
		found = open_session(dir, sessions[i]);
	free(sessions);
	return found;
}

/* Root named a session or process of another user: look where that user's sessions are. */
static struct ctl_peer *find_of_other(pid_t wanted, struct sb_err *err)
{
	char path[64], dir[256];
	struct sb_err ignored = { 0 };
	struct stat st;
	size_t running;

	snprintf(path, sizeof(path), "/proc/%d", wanted);
	if (stat(path, &st) < 0 || st.st_uid == geteuid())
		return NULL;
	if (geteuid() == 0) {
		runtime_dir_of(st.st_uid, dir, sizeof(dir));
		return runtime_check(dir, st.st_uid, &ignored) < 0 ? NULL :
								     find(dir, wanted, &running);
	}
	err_set(err, SB_EPERM, "process %d is another user's (uid %u)", wanted,
		(unsigned int)st.st_uid);
	err_hint(err, "a session is for its own user and root: sudo sbctl");
	return NULL;
}

static void say_none(const char *which, size_t running, struct sb_err *err)
{
	if (which)
		err_set(err, SB_ENOPROC, "no session has the number %s or has hooked that process",
			which);
	else if (running)
		err_set(err, SB_EUSAGE, "%zu sessions are running, and none is named", running);
	else
		err_set(err, SB_ENOPROC, "no session is running, and no kernel module is loaded");
	err_hint(err, "%s%s",
		 running ? "sbctl sessions lists them; -s N names one" :
			   "start one: sbinject --daemon -p PID",
		 running || geteuid() == 0 ? "" : "; those of root: sudo sbctl");
}

struct ctl_peer *ctl_open(const char *which, struct sb_err *err)
{
	char dir[256], *end = NULL;
	long wanted = which ? strtol(which, &end, 10) : 0;
	struct ctl_peer *peer;
	size_t running;

	if (which && (!*which || *end || wanted <= 0 || wanted > INT_MAX)) {
		err_set(err, SB_EUSAGE, "-s takes a session's number or a process id, not '%s'",
			which);
		err_hint(err, "sbctl sessions shows what is running");
		return NULL;
	}
	if (!may_look(runtime_dir(dir, sizeof(dir)), err))
		return NULL;
	peer = find(dir, (pid_t)wanted, &running);
	if (!peer && wanted)
		peer = find_of_other((pid_t)wanted, err);
	if (!peer && !which && !running && ctl_kmod_dir())
		peer = peer_new(-1, ctl_kmod_dir());
	if (!peer && !err->code)
		say_none(which, running, err);
	return peer;
}

struct ctl_peer *ctl_open_kmod(struct sb_err *err)
{
	if (ctl_kmod_dir())
		return peer_new(-1, ctl_kmod_dir());
	err_set(err, SB_ENOPROC, "the kernel module is not loaded");
	err_hint(err, "modprobe speed_bump, or leave out --kmod to address a session");
	return NULL;
}

static void show_session(const json_t *s)
{
	char backend[TEXT_QUOTE_SIZE];
	const json_t *pids = json_object_get(s, "pids");
	bool ours = json_integer_value(json_object_get(s, "pid_namespace")) ==
		    (json_int_t)runtime_namespace();

	printf("%lld  %s  targets: %lld  processes: %zu (%lld%s)  %s%s\n",
	       (long long)json_integer_value(json_object_get(s, "session")),
	       text_quote(json_string_value(json_object_get(s, "backend")), backend,
			  sizeof(backend)),
	       (long long)json_integer_value(json_object_get(s, "targets")), json_array_size(pids),
	       (long long)json_integer_value(json_array_get(pids, 0)),
	       json_array_size(pids) > 1 ? ", ..." : "",
	       json_is_true(json_object_get(s, "enabled")) ? "enabled" : "disabled",
	       ours ? "" : "  (its numbers are of another pid namespace)");
}

int ctl_sessions(bool as_json, struct sb_err *err)
{
	char dir[256];
	pid_t *sessions;
	size_t n, shown = 0;
	json_t *all;

	if (!may_look(runtime_dir(dir, sizeof(dir)), err))
		return -(int)err->code;
	n = runtime_sessions(dir, &sessions);
	all = json_array();
	for (size_t i = 0; i < n; i++) {
		struct ctl_peer *peer = open_session(dir, sessions[i]);
		struct sb_err ignored = { 0 };
		char error[16];
		json_t *status = peer ? ctl_ask(peer, json_pack("{s:s}", "op", "status"), &ignored,
						error) :
					NULL;

		ctl_close(peer);
		if (!status)
			continue;
		json_object_set_new(status, "session", json_integer(sessions[i]));
		json_array_append_new(all, status);
		shown++;
	}
	free(sessions);
	if (as_json) {
		char *text = json_document(all, true);

		puts(text);
		free(text);
	}
	for (size_t i = 0; i < json_array_size(all) && !as_json; i++)
		show_session(json_array_get(all, i));
	json_decref(all);
	if (!shown && !as_json)
		fputs("sbctl: no session is running\n", stderr);
	return 0;
}
