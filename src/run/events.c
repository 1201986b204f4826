/* SPDX-License-Identifier: MIT */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "event-text.h"
#include "evidence/now.h"
#include "src/base/must.h"
#include "src/out/place.h"

enum {
	TICK_MS = 20,
	PASS = 4096,		/* waits in one go */
	TEXT_MOST = 1 << 20,	/* as long as so much is unwritten, no more waits are taken */
	CHANGES_MOST = 1 << 20, /* bytes of lines that are not in the text yet */
	END_MS = 1000,		/* without a byte written, then the rest is given up ... */
};
#define END_NS	   10000000000u /* ... and after so long in any case */
#define SETTLED_NS 1000000u	/* younger waits may be on their way into a ring */

/* A line that waits for its turn. */
struct change {
	uint64_t t_ns;
	char *text;
};

struct bytes {
	char *data;
	size_t len, cap;
};

struct events {
	int fd, wake;
	bool is_socket;
	pthread_t thread;
	pthread_mutex_t lock;	   /* of all below but what is the thread's alone */
	struct evidence *evidence; /* NULL: no waits */
	struct change *change;
	size_t n_changes, change_bytes;
	struct evidence_pauses recorded;
	uint64_t waits, unwritten;
	bool end;
	int64_t ahead_ns; /* CLOCK_REALTIME, of CLOCK_MONOTONIC */
	struct bytes text;
	int error;  /* why nothing can be written any more; 0: it can */
	bool asked; /* for the error */
	/* The thread's. */
	struct bytes out;
	size_t at; /* of out: so many are written */
};

/* ---- the place ---- */

/* The standard output is also others': a pipe or terminal is opened once more, so that not blocking
 * is a property of ours alone. */
static int standard_output(void)
{
	struct stat st;

	if (fstat(STDOUT_FILENO, &st) < 0)
		return -1;
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
		return open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

int events_place(const char *path)
{
	int fd = strcmp(path, "-") ? out_place_open(path, O_APPEND | O_CREAT | O_NONBLOCK) :
				     standard_output();
	int high = fd;

	if (fd >= 0 && fd < 3) { /* the tracer's standard streams lead nowhere */
		high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
	}
	return high;
}

/* ---- lines ---- */

static void append(struct bytes *b, const char *text)
{
	size_t n = strlen(text);

	if (b->len + n + 1 > b->cap) {
		b->cap = 2 * b->cap + n + 4096;
		b->data = must_realloc(b->data, b->cap);
	}
	memcpy(b->data + b->len, text, n);
	b->data[b->len + n] = '\n';
	b->len += n + 1;
}

/* Changes up to this time, or all of them. */
static void append_changes(struct events *ev, uint64_t until_ns)
{
	size_t n = 0;

	for (; n < ev->n_changes && ev->change[n].t_ns <= until_ns; n++) {
		append(&ev->text, ev->change[n].text);
		ev->change_bytes -= strlen(ev->change[n].text);
		free(ev->change[n].text);
	}
	ev->n_changes -= n;
	memmove(ev->change, ev->change + n, ev->n_changes * sizeof(*ev->change));
}

static void append_wait(void *ctx, const struct evidence_pause *pause)
{
	struct events *ev = ctx;
	char text[EVENT_WAIT_SIZE];

	append_changes(ev, pause->t_ns);
	event_wait_text(pause, ev->ahead_ns, text);
	append(&ev->text, text);
	ev->waits++;
	ev->recorded.n[pause->reason] += pause->counted;
	ev->recorded.ns[pause->reason] += pause->wait_ns;
	ev->recorded.ns[EVIDENCE_RUN_QUEUE] += pause->queue_ns;
}

static int64_t ahead(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - (int64_t)evidence_now_ns();
}

static bool has_room(const struct events *ev)
{
	return ev->text.len < TEXT_MOST;
}

/* False: there may be more at once. */
static bool gather(struct events *ev)
{
	uint64_t until = UINT64_MAX, before = ev->waits;

	if (!has_room(ev))
		return true;
	if (ev->evidence) {
		until = evidence_now_ns() - SETTLED_NS;
		ev->ahead_ns = ahead();
		evidence_pauses(ev->evidence, until, PASS, append_wait, ev);
		if (ev->waits - before == PASS)
			return false;
	}
	append_changes(ev, until);
	return true;
}

/* ---- the thread ---- */

/* Writes what can be written now: the lock is not held, since a disk may be slow. 0, or errno. */
static int write_out(struct events *ev)
{
	ssize_t n;

	while (ev->at < ev->out.len) {
		const char *from = ev->out.data + ev->at;
		size_t len = ev->out.len - ev->at;

		n = ev->is_socket ? send(ev->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
				    write(ev->fd, from, len);
		if (n < 0 && errno != EINTR)
			return errno;
		ev->at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Takes what was gathered, once the last is written. */
static void next_text(struct events *ev)
{
	struct bytes empty = ev->out;

	if (ev->at < ev->out.len)
		return;
	ev->out = ev->text;
	ev->text = empty;
	ev->text.len = ev->at = 0;
}

/* Waits for a line, for the reader, for the next look at the rings. False: nothing happened. */
static bool await(const struct events *ev, int ms, bool reader)
{
	struct pollfd fds[] = { { .fd = ev->wake, .events = POLLIN },
				{ .fd = reader ? ev->fd : -1, .events = POLLOUT } };
	uint64_t count;

	if (poll(fds, 2, ms) <= 0)
		return false;
	if (fds[0].revents && read(ev->wake, &count, sizeof(count)) < 0)
		return false;
	return true;
}

/* The lock is held. */
static void note(struct events *ev, int error)
{
	if (error && error != EAGAIN)
		ev->error = error;
}

/* The last lines. */
static void finish(struct events *ev)
{
	uint64_t until = evidence_now_ns() + END_NS;
	int error = 0;

	while (!error && evidence_now_ns() < until) {
		next_text(ev);
		if (ev->at == ev->out.len)
			return;
		error = write_out(ev);
		if (error == EAGAIN && await(ev, END_MS, true))
			error = 0;
	}
	note(ev, error);
}

static void *run(void *arg)
{
	struct events *ev = arg;
	bool end = false, waits, settled;
	int error = 0;

	while (!end) {
		pthread_mutex_lock(&ev->lock);
		note(ev, error);
		settled = gather(ev);
		next_text(ev);
		waits = ev->evidence;
		end = ev->end;
		pthread_mutex_unlock(&ev->lock);
		error = ev->error ? ev->error : write_out(ev);
		if (!end && (settled || error))
			await(ev, waits ? TICK_MS : -1, error == EAGAIN);
	}
	if (!ev->error)
		finish(ev);
	return NULL;
}

/* ---- for the session's thread ---- */

static bool start(struct events *ev)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&ev->thread, NULL, run, ev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret == 0;
}

struct events *events_open(int fd)
{
	struct events *ev = must_calloc(1, sizeof(*ev));
	struct stat st;

	ev->fd = fd;
	ev->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ev->is_socket = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	pthread_mutex_init(&ev->lock, NULL);
	if (ev->wake >= 0 && start(ev))
		return ev;
	if (ev->wake >= 0)
		close(ev->wake);
	close(fd);
	free(ev);
	return NULL;
}

/* Without it the thread looks when it is due. */
static void wake(const struct events *ev)
{
	const uint64_t one = 1;

	if (write(ev->wake, &one, sizeof(one)) < 0)
		return;
}

static uint64_t lines(const struct bytes *b, size_t from)
{
	uint64_t n = 0;

	for (size_t i = from; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

uint64_t events_close(struct events *ev)
{
	uint64_t unwritten;

	pthread_mutex_lock(&ev->lock);
	append_changes(ev, UINT64_MAX);
	ev->end = true;
	pthread_mutex_unlock(&ev->lock);
	wake(ev);
	pthread_join(ev->thread, NULL);
	unwritten = ev->unwritten + lines(&ev->out, ev->at) + lines(&ev->text, 0);
	free(ev->change);
	free(ev->out.data);
	free(ev->text.data);
	close(ev->wake);
	close(ev->fd);
	free(ev);
	return unwritten;
}

int events_error(struct events *ev)
{
	int error = 0;

	pthread_mutex_lock(&ev->lock);
	if (ev->error && !ev->asked) {
		ev->asked = true;
		error = ev->error;
	}
	pthread_mutex_unlock(&ev->lock);
	return error;
}

void events_line(struct events *ev, uint64_t t_ns, const char *text)
{
	pthread_mutex_lock(&ev->lock);
	if (ev->change_bytes > CHANGES_MOST) {
		ev->unwritten++;
	} else {
		ev->change = must(reallocarray(ev->change, ev->n_changes + 1, sizeof(*ev->change)));
		ev->change[ev->n_changes++] = (struct change){ t_ns, must_strdup(text) };
		ev->change_bytes += strlen(text);
	}
	pthread_mutex_unlock(&ev->lock);
	wake(ev);
}

void events_waits(struct events *ev, struct evidence *e)
{
	pthread_mutex_lock(&ev->lock);
	ev->evidence = e;
	pthread_mutex_unlock(&ev->lock);
	wake(ev);
}

/* ---- the end of the waits ---- */

struct last {
	struct events *ev;
	const struct evidence_reading *r;
};

/* Is it in the reading? A thread that is not there has begun since, or ended before. */
static bool is_before(const struct evidence_reading *r, const struct evidence_pause *pause)
{
	const struct evidence_thread *t = evidence_find(
		r, &(struct evidence_thread){ .tid = pause->tid, .began_ns = pause->began_ns });

	return t ? pause->number < t->pauses : pause->began_ns <= r->t_ns;
}

static void append_last(void *ctx, const struct evidence_pause *pause)
{
	struct last *last = ctx;

	if (is_before(last->r, pause))
		append_wait(last->ev, pause);
}

bool events_agree(const struct evidence_values *sum, const struct evidence_pauses *recorded,
		  const struct evidence_pauses *unrecorded, enum evidence_counter *differs)
{
	for (enum evidence_counter r = EVIDENCE_RUN_QUEUE; r < EVIDENCE_REASONS; r++) {
		bool waits = r >= EVIDENCE_FUTEX;

		if (sum->of[r] == recorded->ns[r] + unrecorded->ns[r] &&
		    (!waits || sum->of[EVIDENCE_WAITS + r - EVIDENCE_FUTEX] ==
				       recorded->n[r] + unrecorded->n[r]))
			continue;
		*differs = r;
		return false;
	}
	return true;
}

/* While the lock is held no wait is taken: those that were are in the reading. */
void events_waits_end(struct events *ev, struct evidence_reading *r, struct result_stream *out)
{
	struct last last = { ev, r };
	enum evidence_counter differs = EVIDENCE_RUN_QUEUE;

	pthread_mutex_lock(&ev->lock);
	evidence_take(ev->evidence, r);
	ev->ahead_ns = ahead();
	evidence_pauses(ev->evidence, UINT64_MAX, SIZE_MAX, append_last, &last);
	append_changes(ev, evidence_now_ns());
	ev->evidence = NULL;
	*out = (struct result_stream){
		.asked = true,
		.waits = ev->waits,
		.lost = r->pauses_lost,
		.agrees = events_agree(&r->sum, &ev->recorded, &r->unrecorded, &differs),
	};
	pthread_mutex_unlock(&ev->lock);
	out->differs = out->agrees ? NULL : evidence_reason(differs);
}
