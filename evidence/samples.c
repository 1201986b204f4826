/* SPDX-License-Identifier: MIT */
/* One event and one ring for each thread: an event that is inherited cannot have a ring of its own.
 */
#include "samples.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "src/base/must.h"

enum { THREADS_MOST = 256, RING_BYTES = 32768 };

struct watched {
	pid_t pid, tid;
	int fd;
	struct perf_event_mmap_page *ring; /* one page, then RING_BYTES */
};

struct samples {
	uint64_t period_ns;
	struct watched *thread;
	size_t n_threads;
	bool user_only;
	bool seen; /* a thread could be watched */
	struct sb_err limit;
	uint64_t lost, unwatched;
};

struct samples *samples_open(uint64_t period_ns)
{
	struct samples *s = must_calloc(1, sizeof(*s));

	s->period_ns = period_ns;
	s->thread = must_calloc(THREADS_MOST, sizeof(*s->thread));
	return s;
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void forget(struct watched *t)
{
	munmap(t->ring, page_size() + RING_BYTES);
	close(t->fd);
}

void samples_close(struct samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_threads; i++)
		forget(&s->thread[i]);
	free(s->thread);
	free(s);
}

static int open_event(const struct samples *s, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = s->period_ns,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.exclude_kernel = s->user_only,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.sample_max_stack = SAMPLES_DEPTH,
	};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void refuse(struct samples *s, const char *call, int why)
{
	if (s->seen || why == ESRCH)
		return;
	err_set(&s->limit, why == EACCES || why == EPERM ? SB_EPERM : SB_ECONFINED,
		"no samples on this machine: %s: %s", call, strerror(why));
	err_hint(&s->limit, "run as root, or set kernel.perf_event_paranoid to 2 or less");
}

static void watch(struct samples *s, pid_t pid, pid_t tid)
{
	struct watched t = { .pid = pid, .tid = tid };

	t.fd = open_event(s, tid);
	if (t.fd < 0 && (errno == EACCES || errno == EPERM) && !s->user_only && !s->n_threads) {
		s->user_only = true;
		t.fd = open_event(s, tid);
	}
	if (t.fd < 0) {
		refuse(s, "perf_event_open", errno);
		return;
	}
	t.ring = mmap(NULL, page_size() + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t.fd, 0);
	if (t.ring == MAP_FAILED) {
		refuse(s, "mmap of a perf event", errno);
		s->unwatched++;
		close(t.fd);
		return;
	}
	s->thread[s->n_threads++] = t;
	s->seen = true;
	s->limit = (struct sb_err){ 0 };
}

static bool is_watched(const struct samples *s, pid_t tid)
{
	for (size_t i = 0; i < s->n_threads; i++)
		if (s->thread[i].tid == tid)
			return true;
	return false;
}

void samples_watch(struct samples *s, pid_t pid)
{
	char path[64];
	uint64_t beyond = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || is_watched(s, tid))
			continue;
		if (s->n_threads < THREADS_MOST)
			watch(s, pid, tid);
		else
			beyond++;
	}
	if (dir)
		closedir(dir);
	s->unwatched = beyond > s->unwatched ? beyond : s->unwatched;
}

/* ---- the ring ---- */

/* A record lies across the end of the ring at times: it is copied first. */
static void copy_out(const struct watched *t, uint64_t at, void *to, size_t size)
{
	const char *data = (const char *)t->ring + page_size();

	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = data[(at + i) % RING_BYTES];
}

/* From the kernel: a number of entries, and markers among them that say whose those after them are.
 */
static void hand_on(const struct watched *t, const uint64_t *word, size_t words, samples_fn *fn,
		    void *ctx)
{
	uint64_t ip[SAMPLES_DEPTH];
	size_t n = 0, count = words ? (size_t)word[0] : 0;
	bool user = false;

	for (size_t i = 1; i <= count && i < words && n < SAMPLES_DEPTH; i++) {
		if (word[i] >= PERF_CONTEXT_MAX)
			user = word[i] == PERF_CONTEXT_USER;
		else if (user)
			ip[n++] = word[i];
	}
	if (n)
		fn(ctx, t->pid, t->tid, ip, n);
}

static void drain(struct samples *s, struct watched *t, samples_fn *fn, void *ctx)
{
	uint64_t head = __atomic_load_n(&t->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = t->ring->data_tail;
	uint64_t word[2 * SAMPLES_DEPTH + 8];

	while (at < head) {
		struct perf_event_header h;
		size_t size;

		copy_out(t, at, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - at)
			break;
		size = h.size - sizeof(h);
		size = size < sizeof(word) ? size : sizeof(word);
		copy_out(t, at + sizeof(h), word, size);
		if (h.type == PERF_RECORD_SAMPLE)
			hand_on(t, word, size / sizeof(*word), fn, ctx);
		else if (h.type == PERF_RECORD_LOST && size >= 2 * sizeof(*word))
			s->lost += word[1];
		at += h.size;
	}
	__atomic_store_n(&t->ring->data_tail, head, __ATOMIC_RELEASE);
}

/* The kernel hangs up the event of a thread that has ended. */
static bool has_ended(const struct watched *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

void samples_drain(struct samples *s, samples_fn *fn, void *ctx)
{
	for (size_t i = 0; i < s->n_threads;) {
		bool ended = has_ended(&s->thread[i]); /* before: then nothing more comes */

		drain(s, &s->thread[i], fn, ctx);
		if (ended) {
			forget(&s->thread[i]);
			s->thread[i] = s->thread[--s->n_threads];
		} else {
			i++;
		}
	}
}

const struct sb_err *samples_limit(const struct samples *s)
{
	return s->limit.code ? &s->limit : NULL;
}

bool samples_user_only(const struct samples *s)
{
	return s->user_only;
}

uint64_t samples_lost(const struct samples *s)
{
	return s->lost;
}

uint64_t samples_unwatched(const struct samples *s)
{
	return s->unwatched;
}
