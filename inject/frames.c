/* SPDX-License-Identifier: MIT */
#include "frames.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/base/caps.h"
#include "src/base/maps.h"

enum {
	SCAN_MOST = 32 << 10,
	SCAN_LEAST = 8 << 10,
	SCAN_BUDGET = 16 << 20,
	HOPS = 8,
	PAGE = 4096,
	CHUNK_PAGES = 64,
	PAUSE_EVERY = 2 << 20,
};
/* Reservations larger than this (shadow memory, arenas) are no stacks, and long to walk. */
#define LARGEST_MAP (16ull << 30)

size_t frames_scan_bytes(size_t threads)
{
	size_t each = threads ? SCAN_BUDGET / threads : SCAN_MOST;

	if (each > SCAN_MOST)
		return SCAN_MOST;
	return each < SCAN_LEAST ? SCAN_LEAST : each & ~4095ul;
}

/* The next place of a stack search: the stack on which a signal arrived. */
struct hop {
	frames_fn *fn;
	void *ctx;
	uint64_t from, to, next;
};

static void note_hop(void *ctx, uint64_t at, const struct arch_regs *regs)
{
	struct hop *hop = ctx;

	hop->fn(hop->ctx, at, regs);
	if (arch->sp(regs) - hop->from >= hop->to - hop->from)
		hop->next = arch->sp(regs);
}

static void look(const uint8_t *buf, size_t len, uint64_t addr, frames_fn *fn, void *ctx)
{
	struct arch_regs regs;

	for (size_t at = 0; arch->context_next(buf, len, &at, &regs); at += 8)
		fn(ctx, addr + at, &regs);
}

void frames_on_stack(const struct memory *mem, uint64_t sp, size_t scan, frames_fn *fn, void *ctx)
{
	struct hop hop = { .fn = fn, .ctx = ctx, .next = sp & ~7ull };
	uint8_t buf[SCAN_MOST];

	for (int i = 0; i < HOPS && hop.next; i++) {
		size_t got = memory_peek(mem, hop.next, buf, scan < SCAN_MOST ? scan : SCAN_MOST);

		hop.from = hop.next;
		hop.to = hop.from + got;
		hop.next = 0;
		look(buf, got, hop.from, note_hop, &hop);
	}
}

struct scan {
	const struct memory *mem;
	int pagemap;
	uint64_t left, since_pause;
	frames_fn *fn;
	void *ctx;
	void (*pause)(void *ctx);
	uint8_t buf[CHUNK_PAGES * PAGE + PAGE]; /* a page of overlap in front */
	size_t kept;				/* of that */
};

/*
 * A run of present pages; a frame that lies across its end belongs to the next run, if that follows
 * directly.
 */
static void scan_run(struct scan *s, uint64_t addr, size_t len)
{
	size_t got = memory_peek(s->mem, addr, s->buf + PAGE, len), keep = arch->context_size - 8;

	look(s->buf + PAGE - s->kept, s->kept + got, addr - s->kept, s->fn, s->ctx);
	s->kept = got == len && len >= keep ? keep : 0;
	memcpy(s->buf + PAGE - s->kept, s->buf + PAGE + got - s->kept, s->kept);
	s->left -= len < s->left ? len : s->left;
	s->since_pause += len;
	if (s->since_pause < PAUSE_EVERY)
		return;
	s->since_pause = 0;
	s->pause(s->ctx);
}

static bool present(uint64_t entry)
{
	return entry >> 62; /* in memory or in swap */
}

static void scan_map(struct scan *s, const struct map_entry *m)
{
	uint64_t entry[CHUNK_PAGES];

	s->kept = 0;
	for (uint64_t at = m->start; at < m->end && s->left; at += CHUNK_PAGES * PAGE) {
		ssize_t got = pread(s->pagemap, entry, sizeof(entry), (off_t)(at / PAGE * 8));
		size_t n = got > 0 ? (size_t)got / 8 : 0, from = 0, to;

		if (n > (m->end - at) / PAGE)
			n = (m->end - at) / PAGE;
		for (; from < n; from = to + 1) {
			for (to = from; to < n && present(entry[to]);)
				to++;
			if (to > from)
				scan_run(s, at + from * PAGE, (to - from) * PAGE);
			if (to < n)
				s->kept = 0;
		}
		if (!got)
			return;
	}
}

static bool can_hold_frames(const struct map_entry *m)
{
	return m->w && m->r && m->end - m->start <= LARGEST_MAP && m->path[0] != '(' &&
	       strncmp(m->path, "/memfd:sbinject", 15) &&
	       (!strcmp(m->path, "/dev/zero") || strncmp(m->path, "/dev/", 5)) &&
	       (!m->shared || !strcmp(m->path, "/dev/zero") || !strncmp(m->path, "/memfd:", 7));
}

static int by_size(const void *a, const void *b)
{
	const struct map_entry *x = a, *y = b;
	uint64_t m = x->end - x->start, n = y->end - y->start;

	return (m > n) - (m < n);
}

bool frames_everywhere(const struct memory *mem, uint64_t budget, frames_fn *fn, void *ctx,
		       void (*pause)(void *ctx))
{
	bool complete = false;
	struct scan *s = calloc(1, sizeof(*s));
	struct maps maps;
	char path[64];

	if (!s)
		abort();
	*s = (struct scan){ .mem = mem, .left = budget, .fn = fn, .ctx = ctx, .pause = pause };
	snprintf(path, sizeof(path), "/proc/%d/pagemap", mem->pid);
	s->pagemap = CAPS(open(path, O_RDONLY | O_CLOEXEC));
	if (s->pagemap >= 0 && maps_read(mem->pid, &maps, NULL) == 0) {
		qsort(maps.entry, maps.count, sizeof(*maps.entry), by_size);
		for (size_t i = 0; i < maps.count && s->left; i++)
			if (can_hold_frames(&maps.entry[i]))
				scan_map(s, &maps.entry[i]);
		complete = s->left > 0;
		maps_free(&maps);
	}
	if (s->pagemap >= 0)
		close(s->pagemap);
	free(s);
	return complete;
}
