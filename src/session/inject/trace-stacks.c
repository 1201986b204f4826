/* SPDX-License-Identifier: MIT */
#include "trace-stacks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "inject/clock.h"
#include "src/base/maps.h"
#include "src/base/must.h"

enum {
	SHARE = 20, /* at most one of 20 parts of the time is spent in reading */
	READ_FIRST = 64 << 10,
	READ_MOST = 16 << 20,
};

#define RARELY_NS 200000000ull

struct trace_maps_of {
	pid_t pid;
	char *text; /* its executable mappings, as the kernel prints them */
	size_t len;
	uint64_t next_ns; /* not before */
	uint64_t read_ns; /* when it was read last */
	uint64_t change;
};

static struct trace_maps_of *maps_of(struct trace_maps *all, pid_t pid)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->of[i].pid == pid)
			return &all->of[i];
	all->of = must_realloc(all->of, (all->n + 1) * sizeof(*all->of));
	all->of[all->n] = (struct trace_maps_of){ .pid = pid };
	return &all->of[all->n++];
}

/* One that ends in the middle of the reading has only the first of its maps: then there are none.
 */
static char *read_all(pid_t pid, size_t *len)
{
	size_t room = READ_FIRST;
	char path[64], *text = NULL, first;
	ssize_t n = 1;
	int fd;

	*len = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", maps_face(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0 && *len < READ_MOST) {
		room = *len + READ_FIRST / 2 > room ? room * 2 : room;
		text = must_realloc(text, room);
		n = read(fd, text + *len, room - *len);
		*len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0 && pread(fd, &first, 1, 0) != 1)
		*len = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

/* Keeps the lines of code: START-END r-xp ... */
static size_t keep_code(char *text, size_t len)
{
	char *at = text, *to = text, *end = text + len;

	while (at < end) {
		char *line_end = memchr(at, '\n', (size_t)(end - at));
		char *mode = memchr(at, ' ', (size_t)((line_end ? line_end : end) - at));
		size_t n;

		if (!line_end)
			break;
		n = (size_t)(line_end + 1 - at);
		if (mode && line_end - mode > 4 && mode[3] == 'x') {
			memmove(to, at, n);
			to += n;
		}
		at += n;
	}
	return (size_t)(to - text);
}

static void put_maps(struct trace_bytes *to, const struct trace_maps_of *of)
{
	const int32_t pid = of->pid;
	char *message = must_realloc(NULL, sizeof(pid) + of->len);

	memcpy(message, &pid, sizeof(pid));
	memcpy(message + sizeof(pid), of->text, of->len);
	trace_put(to, TRACE_MESSAGE_MAPS, message, sizeof(pid) + of->len);
	free(message);
}

/* Of this thread alone: on a busy machine a reading that takes a millisecond may last for fifty,
 * and no maps would be seen for a second after it. */
static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

void trace_maps_look(struct trace_maps *all, pid_t pid, bool now, struct trace_bytes *to)
{
	struct trace_maps_of *of = maps_of(all, pid);
	uint64_t from = clock_ns(), began = processor_ns(), took;
	size_t len;
	char *text;

	if (!now && from < of->next_ns)
		return;
	text = read_all(pid, &len);
	len = text ? keep_code(text, len) : 0;
	took = processor_ns() - began;
	of->next_ns = from + took * SHARE;
	of->read_ns = from;
	/* A process that has ended has no maps; its last ones remain. */
	if (!len || len > TRACE_MESSAGE_MAX - sizeof(int32_t) ||
	    (len == of->len && memcmp(text, of->text, len) == 0)) {
		free(text);
		return;
	}
	free(of->text);
	of->text = text;
	of->len = len;
	of->change = ++all->changes;
	put_maps(to, of);
}

void trace_maps_look_rarely(struct trace_maps *all, pid_t pid, struct trace_bytes *to)
{
	if (clock_ns() - maps_of(all, pid)->read_ns >= RARELY_NS)
		trace_maps_look(all, pid, false, to);
}

static const struct trace_maps_of *known_of(const struct trace_maps *all, pid_t pid)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->of[i].pid == pid)
			return &all->of[i];
	return NULL;
}

uint64_t trace_maps_change(const struct trace_maps *all, pid_t pid)
{
	const struct trace_maps_of *of = known_of(all, pid);

	return of ? of->change : 0;
}

/* Each line ends, and begins as the kernel prints it: START-END in hex. */
bool trace_maps_have(const struct trace_maps *all, pid_t pid, uint64_t address)
{
	const struct trace_maps_of *of = known_of(all, pid);
	const char *at = of ? of->text : NULL, *end = at ? at + of->len : NULL;

	while (at && at < end) {
		char *dash;
		uint64_t start = strtoull(at, &dash, 16);

		if (*dash != '-')
			return false;
		if (address >= start && address < strtoull(dash + 1, NULL, 16))
			return true;
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return false;
}

void trace_maps_forget(struct trace_maps *all, pid_t pid, struct trace_bytes *to)
{
	struct trace_maps_of *of = maps_of(all, pid);

	if (of->text) {
		of->len = 0;
		put_maps(to, of);
	}
	free(of->text);
	*of = all->of[--all->n];
}

void trace_maps_free(struct trace_maps *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->of[i].text);
	free(all->of);
	*all = (struct trace_maps){ 0 };
}

void trace_put_stack(struct trace_bytes *to, pid_t pid, const struct sb_page_stack *stack)
{
	struct trace_stack_head head = {
		.pid = pid,
		.end = stack->end,
		.sp = stack->sp,
		.bp = stack->bp,
		.bx = stack->bx,
		.r12 = { stack->r12, stack->r13, stack->r14, stack->r15 },
		.size = stack->size,
		.frames_end = stack->frames_end,
	};
	const size_t size = stack->size + stack->frames;
	char *message = must_realloc(NULL, sizeof(head) + size);

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), stack->word,
	       size); /* the frames directly follow the words */
	trace_put(to, TRACE_MESSAGE_STACK, message, sizeof(head) + size);
	free(message);
}
