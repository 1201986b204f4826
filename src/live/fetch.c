/* SPDX-License-Identifier: MIT */
#include "fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "curl.h"
#include "src/base/confine.h"
#include "src/base/sock.h"

enum { LATER_MS = 3000, MEMORY = 512 << 20, SOCKET = 3 };

struct fetch {
	char *url;
	int fd;
	pid_t pid; /* 0: it was ended; the next question starts another one */
	char *text, why[CURL_ERROR_SIZE];
};

/* An answer; its text follows. */
struct reply {
	long status;
	int code; /* CURLcode */
	size_t len;
	char why[CURL_ERROR_SIZE];
};

struct body {
	char *bytes;
	size_t len;
};

/* ---- the process ---- */

static size_t collect(char *bytes, size_t size, size_t n, void *ctx)
{
	struct body *body = ctx;

	if (body->len + size * n > FETCH_MOST)
		return 0;
	body->bytes = realloc(body->bytes, body->len + size * n + 1);
	if (!body->bytes)
		_exit(1);
	memcpy(body->bytes + body->len, bytes, size * n);
	body->len += size * n;
	return size * n;
}

static CURL *prepare(const char *url, struct body *body)
{
	CURL *curl;

	curl_library.global_init(CURL_GLOBAL_DEFAULT);
	curl = curl_library.easy_init();
	if (!curl)
		_exit(1);
	curl_library.easy_setopt(curl, CURLOPT_URL, url);
	curl_library.easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)FETCH_MS);
	curl_library.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_library.easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
	curl_library.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_library.easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_library.easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	curl_library.easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_library.easy_setopt(curl, CURLOPT_WRITEDATA, body);
	return curl;
}

static void serve(int fd, const char *url)
{
	struct body body = { 0 };
	CURL *curl = prepare(url, &body);
	bool ok = true;
	char byte;

	while (ok && read(fd, &byte, 1) == 1) {
		struct reply reply = { 0 };

		body.len = 0;
		reply.code = (int)curl_library.easy_perform(curl);
		curl_library.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
		strncpy(reply.why, curl_library.easy_strerror((CURLcode)reply.code),
			sizeof(reply.why) - 1);
		reply.len = reply.code == CURLE_OK ? body.len : 0;
		ok = sock_send_all(fd, &reply, sizeof(reply)) &&
		     sock_send_all(fd, body.bytes, reply.len);
	}
	_exit(0);
}

/* Its parent's other descriptors are not for a process that an answer may have taken over. */
static void confine(int fd)
{
	uint64_t resident;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	/* A pipe of the command line's must end with the command line. */
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "sbinject-fetch");
	if ((fd != SOCKET && dup2(fd, SOCKET) < 0) ||
	    syscall(SYS_close_range, SOCKET + 1, ~0u, 0) < 0)
		_exit(1);
	confine_limit(RLIMIT_CORE, 0);
	confine_limit(RLIMIT_DATA, confine_data_size(&resident) + MEMORY);
	confine_rights();
}

static bool start(struct fetch *f)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	f->pid = fork();
	if (f->pid == 0) {
		confine(pair[1]);
		serve(SOCKET, f->url);
	}
	close(pair[1]);
	f->fd = pair[0];
	if (f->pid < 0) {
		close(f->fd);
		f->pid = 0;
	}
	return f->pid > 0;
}

static void end(struct fetch *f)
{
	if (!f->pid)
		return;
	close(f->fd);
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	f->pid = 0;
}

struct fetch *fetch_open(const char *url, struct sb_err *err)
{
	struct fetch *f;

	if (curl_load(err) < 0)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (f)
		f->url = strdup(url);
	if (f && f->url && start(f))
		return f;
	fetch_close(f);
	err_set(err, SB_ENOMEM, "no process could be started to read %s", url);
	return NULL;
}

/* ---- its user ---- */

static long left_ms(const struct timespec *began)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return LATER_MS -
	       ((now.tv_sec - began->tv_sec) * 1000 + (now.tv_nsec - began->tv_nsec) / 1000000);
}

static bool receive(int fd, void *bytes, size_t len, const struct timespec *began)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char *p = bytes;

	while (len) {
		long left = left_ms(began);
		ssize_t n;

		if (left <= 0)
			return false;
		if (poll(&in, 1, (int)left) <= 0)
			continue;
		n = recv(fd, p, len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* One question and its answer, whole. */
static bool converse(struct fetch *f, struct reply *reply)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	if (!sock_send_all(f->fd, "", 1) || !receive(f->fd, reply, sizeof(*reply), &began) ||
	    reply->len > FETCH_MOST)
		return false;
	f->text = calloc(1, reply->len + 1);
	if (!f->text)
		abort();
	return receive(f->fd, f->text, reply->len, &began);
}

const char *fetch_text(struct fetch *f, const char **text, long *status)
{
	struct reply reply;

	free(f->text);
	f->text = NULL;
	*text = "";
	*status = 0;
	if ((!f->pid && !start(f)) || !converse(f, &reply)) {
		end(f); /* an answer that comes late would be taken for the next one */
		return "the process that reads it ended, or does not answer";
	}
	*text = f->text;
	*status = reply.status;
	memcpy(f->why, reply.why, sizeof(f->why));
	f->why[sizeof(f->why) - 1] = '\0';
	return reply.code == CURLE_OK ? NULL : f->why;
}

int fetch_page(struct fetch *f, const char **text, struct sb_err *err)
{
	long status;
	const char *why = fetch_text(f, text, &status);

	if (why && status >= 400)
		return err_set(err, SB_EFILE, "progress: %s answers with status %ld", f->url,
			       status);
	return why ? err_set(err, SB_EFILE, "progress: %s: %s", f->url, why) : 0;
}

void fetch_close(struct fetch *f)
{
	if (!f)
		return;
	end(f);
	free(f->text);
	free(f->url);
	free(f);
}
