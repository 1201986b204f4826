/* SPDX-License-Identifier: MIT */
#include "hardware.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "now.h"
#include "tasks.h"
#include "src/base/err.h"
#include "src/base/must.h"

/* Descriptors for all else that a session opens; tries to open events while no thread begins. */
enum { SPARE = 256, TRIES = 8 };

#define CACHE(cache, what) \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | (what) << 16)

const struct hardware_event hardware_events[HARDWARE_EVENTS] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "llc_references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
	{ "llc_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "dtlb_load_misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, PERF_COUNT_HW_CACHE_RESULT_MISS) },
	{ "branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
};

struct counted {
	pid_t tid;
	int fd[HARDWARE_MOST]; /* -1: the event is not counted */
	struct hardware_raw last[HARDWARE_MOST];
	double sum[HARDWARE_MOST];
};

struct hardware {
	const struct hardware_event *event;
	size_t n_events;
	bool children;
	struct tasks roots; /* as added */
	struct counted *thread;
	size_t n_threads;
	int why[HARDWARE_MOST]; /* an errno; 0: it is counted */
	char text[HARDWARE_MOST][160];
	uint64_t enabled_ns[HARDWARE_MOST], running_ns[HARDWARE_MOST];
	uint64_t began_ns;
	struct hardware_about about;
};

struct hardware *hardware_open(const struct hardware_event *event, size_t n, bool children)
{
	struct hardware *h = must_calloc(1, sizeof(*h));

	h->event = event;
	h->n_events = n;
	h->children = children;
	h->about.counted = 1;
	return h;
}

static void close_events(struct hardware *h)
{
	for (size_t i = 0; i < h->n_threads; i++)
		for (size_t e = 0; e < h->n_events; e++)
			if (h->thread[i].fd[e] >= 0)
				close(h->thread[i].fd[e]);
	h->n_threads = 0;
	h->about.left_out = 0;
}

void hardware_close(struct hardware *h)
{
	if (!h)
		return;
	close_events(h);
	tasks_free(&h->roots);
	free(h->thread);
	free(h);
}

void hardware_add(struct hardware *h, pid_t pid)
{
	if (!h->began_ns)
		tasks_add(&h->roots, pid);
}

/* ---- opening ---- */

static int open_event(const struct hardware *h, const struct hardware_event *event, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,
		.inherit_thread = !h->children, /* Linux 5.13 */
		.exclude_kernel = h->about.user_only,
		.exclude_hv = h->about.user_only,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The first event that is refused decides for all: they are of the same part of the time. */
static int open_or_user(struct hardware *h, const struct hardware_event *event, pid_t tid)
{
	int fd = open_event(h, event, tid);

	if (fd >= 0 || (errno != EACCES && errno != EPERM) || h->about.user_only || h->n_threads)
		return fd;
	h->about.user_only = true;
	fd = open_event(h, event, tid);
	if (fd < 0)
		h->about.user_only = false;
	return fd;
}

/* False: no descriptor is left. One event that this machine lacks is no obstacle to the others. */
static bool open_thread(struct hardware *h, pid_t tid)
{
	struct counted *t = &h->thread[h->n_threads];
	bool any = false, full = false;

	*t = (struct counted){ .tid = tid };
	for (size_t e = 0; e < h->n_events; e++) {
		t->fd[e] = full || h->why[e] ? -1 : open_or_user(h, &h->event[e], tid);
		any |= t->fd[e] >= 0;
		if (t->fd[e] >= 0 || full || h->why[e] || errno == ESRCH)
			continue;
		full = errno == EMFILE || errno == ENFILE;
		if (!full)
			h->why[e] = errno;
	}
	for (size_t e = 0; full && e < h->n_events; e++)
		if (t->fd[e] >= 0)
			close(t->fd[e]);
	h->n_threads += any && !full;
	return !full;
}

static size_t most_threads(const struct hardware *h)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur > SPARE ? (size_t)(limit.rlim_cur - SPARE) / h->n_events : 0;
}

static void open_all(struct hardware *h, const struct tasks *threads)
{
	size_t most = most_threads(h);

	h->thread = must(reallocarray(h->thread, threads->n + 1, sizeof(*h->thread)));
	for (size_t i = 0; i < threads->n; i++)
		if (h->n_threads >= most || !open_thread(h, threads->id[i]))
			h->about.left_out++;
}

static bool any_known(const struct hardware *h)
{
	for (size_t e = 0; e < h->n_events; e++)
		if (!h->why[e])
			return true;
	return false;
}

/*
 * A thread that begins meanwhile may have inherited the events or not: its parent had some at that
 * moment, or had none yet. Opened once more it would count twice. So all is opened anew until no
 * thread has begun meanwhile.
 */
static void open_settled(struct hardware *h)
{
	struct tasks before = { 0 }, after = { 0 };
	size_t began = 1;

	for (int i = 0; i < TRIES && began && any_known(h); i++) {
		close_events(h);
		tasks_threads(&h->roots, h->children, &before);
		open_all(h, &before);
		tasks_threads(&h->roots, h->children, &after);
		began = tasks_missing(&after, &before);
	}
	h->about.unsure = any_known(h) ? began : 0;
	tasks_free(&before);
	tasks_free(&after);
}

static void explain(struct hardware *h, size_t e)
{
	int why = h->why[e];

	if (why == EACCES || why == EPERM)
		snprintf(h->text[e], sizeof(h->text[e]),
			 "the kernel does not permit it (%s): run as root, or set "
			 "kernel.perf_event_paranoid to 2 or less",
			 strerror(why));
	else if (why == EINVAL && !h->children)
		snprintf(h->text[e], sizeof(h->text[e]),
			 "this kernel cannot count threads without children (Linux 5.13 can)");
	else if (why)
		snprintf(h->text[e], sizeof(h->text[e]),
			 "not on this machine: no hardware counters (%s: %s)", h->event[e].name,
			 strerror(why));
	else if (!h->n_threads)
		snprintf(h->text[e], sizeof(h->text[e]), "no thread could be counted%s",
			 h->about.left_out ? ": RLIMIT_NOFILE" : "");
}

static bool read_raw(int fd, struct hardware_raw *raw)
{
	return fd >= 0 && read(fd, raw, sizeof(*raw)) == sizeof(*raw);
}

void hardware_begin(struct hardware *h)
{
	if (h->began_ns)
		return;
	open_settled(h);
	h->about.threads = h->n_threads;
	for (size_t e = 0; e < h->n_events; e++)
		explain(h, e);
	for (size_t i = 0; i < h->n_threads; i++)
		for (size_t e = 0; e < h->n_events; e++)
			read_raw(h->thread[i].fd[e], &h->thread[i].last[e]);
	h->began_ns = evidence_now_ns();
}

int hardware_probe(struct sb_err *err)
{
	struct hardware *h = hardware_open(hardware_events, HARDWARE_EVENTS, true);
	enum sb_code code = SB_OK;

	hardware_add(h, getpid());
	hardware_begin(h);
	if (!h->n_threads)
		code = h->why[0] == EACCES || h->why[0] == EPERM ? SB_EPERM : SB_ECONFINED;
	if (code)
		err_set(err, code, "%s", h->text[0]);
	if (code == SB_ECONFINED)
		err_hint(err, "a machine, or a virtual machine, that shows them (vPMU)");
	hardware_close(h);
	return -(int)code;
}

const char *hardware_unknown(const struct hardware *h, size_t event)
{
	if (!h->began_ns)
		return "counting has not begun";
	return *h->text[event] ? h->text[event] : NULL;
}

/* ---- reading ---- */

bool hardware_growth(const struct hardware_raw *before, const struct hardware_raw *now,
		     double *growth)
{
	*growth = 0;
	if (now->running_ns <= before->running_ns)
		return false;
	*growth = (double)(now->value - before->value) *
		  ((double)(now->enabled_ns - before->enabled_ns) /
		   (double)(now->running_ns - before->running_ns));
	return true;
}

/* Until an event had its turn the next growth has that time, too. */
static void grow(struct hardware *h, struct counted *t, size_t e)
{
	struct hardware_raw now, *last = &t->last[e];
	double growth;

	if (!read_raw(t->fd[e], &now) || !hardware_growth(last, &now, &growth))
		return;
	t->sum[e] += growth;
	h->enabled_ns[e] += now.enabled_ns - last->enabled_ns;
	h->running_ns[e] += now.running_ns - last->running_ns;
	*last = now;
}

void hardware_read(struct hardware *h)
{
	h->about.counted = 1;
	for (size_t e = 0; e < h->n_events; e++) {
		double counted;

		for (size_t i = 0; i < h->n_threads; i++)
			grow(h, &h->thread[i], e);
		counted = h->enabled_ns[e] ? (double)h->running_ns[e] / (double)h->enabled_ns[e] :
					     1;
		h->about.counted = counted < h->about.counted ? counted : h->about.counted;
	}
}

uint64_t hardware_sum(const struct hardware *h, size_t event)
{
	double sum = 0;

	for (size_t i = 0; i < h->n_threads; i++)
		sum += h->thread[i].sum[event];
	return (uint64_t)(sum + 0.5);
}

static int by_tid(const void *key, const void *thread)
{
	pid_t a = *(const pid_t *)key, b = ((const struct counted *)thread)->tid;

	return (a > b) - (a < b);
}

/* They were opened in the order of their numbers. */
bool hardware_thread(const struct hardware *h, pid_t tid, size_t event, uint64_t *value)
{
	const struct counted *t =
		h->n_threads ? bsearch(&tid, h->thread, h->n_threads, sizeof(*t), by_tid) : NULL;

	*value = t ? (uint64_t)(t->sum[event] + 0.5) : 0;
	return t;
}

uint64_t hardware_began_ns(const struct hardware *h)
{
	return h->began_ns;
}

void hardware_about(const struct hardware *h, struct hardware_about *about)
{
	*about = h->about;
}
