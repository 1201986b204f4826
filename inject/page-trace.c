/* SPDX-License-Identifier: MIT */
/*
 * Chunks of recorded calls. What the target writes is copied before it is looked at, and every
 * number of it is bounded.
 */
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "page-stacks.h"
#include "page-trace.h"
#include "src/base/must.h"

#define MIX 0x9e3779b97f4a7c15ull /* as in stub-code.S */

enum { GROUP = 4, GROUPS = SB_PAGE_CALL_THREADS / GROUP, GROUP_BITS = 10 };
_Static_assert(GROUPS == 1 << GROUP_BITS, "groups of threads");

/* Chunks that are kept free, and the time for which they must last at the present pace. */
enum { AHEAD_LEAST = 1024 };
#define AHEAD_S 0.5
#define PACE_S	0.005

/* A thread takes a place for a stack when its event has one, and needs microseconds then. */
#define STACK_AGE_NS 10000000000ull

/* What has been read of one chunk since it was offered. */
struct chunk {
	uint64_t taken[(SB_PAGE_EVENTS + 63) / 64]; /* a bit for each event */
	uint32_t n;
	uint32_t low; /* all below are taken */
	uint64_t shorter;
	bool moved; /* something was taken from it since the last page_trace_reclaim() */
};

struct page_trace {
	struct page *page;
	struct chunk *chunk;
	uint32_t *offer; /* a copy of the list in the front */
	uint32_t *out;	 /* chunks in the hands of threads */
	uint32_t *idle;	 /* used before, and not offered */
	size_t n_out, n_idle;
	uint64_t offered, taken;
	double per_ns, allowed; /* events */
	uint64_t allowed_at;	/* ns */
	uint64_t looked_at, taken_then;
	double pace;	/* chunks taken in AHEAD_S, the highest of late */
	uint32_t fresh; /* chunks from this number on were never used: their memory is not allocated
			 */
	struct page_trace_sums sums;
	struct page_stacks *stacks; /* NULL: events have none */
	char *stack;		    /* copies of those of one chunk, by place */
};

static struct sb_page_trace *front(const struct page_trace *t)
{
	return (struct sb_page_trace *)((char *)t->page->hdr + t->page->lay.trace_off);
}

static struct sb_page_taken *rear(const struct page_trace *t)
{
	return (struct sb_page_taken *)((char *)t->page->hdr + t->page->lay.chunks_off);
}

static struct sb_page_chunk *chunk_at(const struct page_trace *t, uint32_t c)
{
	return (struct sb_page_chunk *)(rear(t) + 1) + c;
}

static void offer(struct page_trace *t, uint32_t c)
{
	uint32_t at = (uint32_t)(t->offered & (t->page->lay.chunks - 1));

	t->offer[at] = front(t)->chunk[at] = c;
	__atomic_store_n(&front(t)->offered, ++t->offered, __ATOMIC_RELEASE);
}

/*
 * The number of chunks that shall be free. A page of memory that is touched for the first time
 * costs a thread microseconds, so no more of them go round than a pause of the tracer may need.
 */
static uint64_t wanted(struct page_trace *t, uint64_t now)
{
	double passed = (double)(now - t->looked_at) / 1e9, pace;

	if (passed > PACE_S) {
		pace = (double)(t->taken - t->taken_then) / passed * AHEAD_S;
		t->pace = pace > t->pace * 0.9 ? pace : t->pace * 0.9;
		t->looked_at = now;
		t->taken_then = t->taken;
	}
	return AHEAD_LEAST + (uint64_t)t->pace;
}

/* A chunk that was used before, if there is one. */
static uint32_t next_idle(struct page_trace *t)
{
	if (t->n_idle)
		return t->idle[--t->n_idle];
	/* The target gets memory that is allocated already. */
	memset(chunk_at(t, t->fresh), 0, sizeof(struct sb_page_chunk));
	return t->fresh++;
}

/* As many chunks as are wanted and as the limit allows. */
static void offer_idle(struct page_trace *t)
{
	uint64_t now = clock_ns(), want = wanted(t, now);

	if (t->per_ns) {
		double most = t->per_ns * 1e8 + SB_PAGE_EVENTS;

		t->allowed += (double)(now - t->allowed_at) * t->per_ns;
		t->allowed_at = now;
		if (t->allowed > most)
			t->allowed = most;
	}
	while ((t->n_idle || t->fresh < t->page->lay.chunks) && t->offered - t->taken < want &&
	       (!t->per_ns || t->allowed >= SB_PAGE_EVENTS)) {
		t->allowed -= t->per_ns ? SB_PAGE_EVENTS : 0;
		offer(t, next_idle(t));
	}
}

struct page_trace *page_trace_open(struct page *page, uint64_t min_ticks, double per_second)
{
	struct page_trace *t = must_calloc(1, sizeof(*t));
	uint32_t n = page->lay.chunks;

	t->page = page;
	t->chunk = must_calloc(n, sizeof(*t->chunk));
	t->offer = must_calloc(n, sizeof(*t->offer));
	t->out = must_calloc(n, sizeof(*t->out));
	t->idle = must_calloc(n, sizeof(*t->idle));
	t->per_ns = per_second / 1e9;
	t->allowed = per_second / 10 + SB_PAGE_EVENTS;
	t->allowed_at = t->looked_at = clock_ns();
	front(t)->min_ticks = min_ticks + 1;
	t->stacks = page_stacks_open(page);
	if (t->stacks)
		t->stack = must_calloc(SB_PAGE_EVENTS, page_stacks_size(t->stacks));
	offer_idle(t);
	return t;
}

void page_trace_free(struct page_trace *t)
{
	if (!t)
		return;
	free(t->chunk);
	free(t->offer);
	free(t->out);
	free(t->idle);
	free(t->stack);
	page_stacks_free(t->stacks);
	free(t);
}

/* The chunks that threads have taken since. */
static void find_taken(struct page_trace *t)
{
	uint64_t taken = __atomic_load_n(&rear(t)->taken, __ATOMIC_ACQUIRE);

	if (taken > t->offered)
		taken = t->offered;
	while (t->taken < taken)
		t->out[t->n_out++] = t->offer[t->taken++ & (t->page->lay.chunks - 1)];
	if (t->stacks)
		page_stacks_find(t->stacks);
}

/* The process of a chunk, or 0: none that is in use. */
static uint32_t proc_of(const struct page_trace *t, const struct sb_page_chunk *m)
{
	uint64_t off = __atomic_load_n(&m->calls_off, __ATOMIC_RELAXED);
	uint64_t proc = off / sizeof(struct sb_page_calls);

	return off % sizeof(struct sb_page_calls) || proc >= t->page->lay.procs_max ||
			       !t->page->proc_used[proc] ?
		       0 :
		       (uint32_t)proc;
}

static uint32_t used_of(const struct sb_page_chunk *m)
{
	uint64_t used = __atomic_load_n(&m->used, __ATOMIC_ACQUIRE);

	return used < SB_PAGE_EVENTS ? (uint32_t)used : SB_PAGE_EVENTS;
}

static uint32_t limit_of(const struct sb_page_chunk *m)
{
	uint64_t limit = __atomic_load_n(&m->limit, __ATOMIC_ACQUIRE);

	return limit && limit < SB_PAGE_EVENTS ? (uint32_t)limit : SB_PAGE_EVENTS;
}

static bool is_taken(const struct chunk *c, uint32_t i)
{
	return c->taken[i / 64] >> (i % 64) & 1;
}

static void take_place(struct chunk *c, uint32_t i)
{
	if (is_taken(c, i))
		return;
	c->taken[i / 64] |= 1ull << (i % 64);
	c->n++;
}

static uint64_t ticks_of(const struct sb_page_chunk *m, uint32_t i)
{
	return __atomic_load_n(&m->event[i].ticks, __ATOMIC_ACQUIRE);
}

/* A place with values goes with the event before it, which may not be complete yet. */
static bool is_complete(uint64_t ticks)
{
	return ticks && ticks != SB_EVENT_MORE;
}

/* The values behind the complete event of place i, which was written after them. Those of place k
 * go to value[k]. */
static void copy_values(struct chunk *c, const struct sb_page_chunk *m, uint32_t i,
			struct page_event *to, uint64_t (*value)[2])
{
	uint8_t more = to->event.more;

	to->event.more = 0;
	to->value = value[i + 1 < SB_PAGE_EVENTS ? i + 1 : i];
	for (uint32_t k = 0; k < more && i + 1 + k < SB_PAGE_EVENTS; k++) {
		const struct sb_page_more *place = (const void *)&m->event[i + 1 + k];

		if (ticks_of(m, i + 1 + k) != SB_EVENT_MORE)
			return;
		memcpy(value[i + 1 + k], place->value, sizeof(place->value));
		take_place(c, i + 1 + k);
		to->event.more++;
	}
}

/* The stack of the event that was copied from place i, and the places behind it without that one.
 */
static void copy_stack(struct page_trace *t, const struct sb_page_chunk *m, uint32_t i,
		       struct page_event *to)
{
	struct sb_page_more more = { 0 };
	struct sb_page_stack *stack;

	to->stack = NULL;
	if (!(to->event.known & SB_KNOWN_STACK) || !to->event.more || !t->stacks)
		return;
	to->event.more--;
	to->event.known &= (uint8_t)~SB_KNOWN_STACK;
	memcpy(more.value, to->value + 2 * (size_t)to->event.more, sizeof(more.value));
	stack = (void *)(t->stack + i * page_stacks_size(t->stacks));
	if (page_stacks_take(t->stacks, &more, m->owner, m->calls_off, to->event.start, stack))
		to->stack = stack;
}

/* Copies the complete events that were not copied before. */
static size_t copy_events(struct page_trace *t, struct chunk *c, const struct sb_page_chunk *m,
			  struct page_event *to, uint64_t (*value)[2])
{
	uint32_t used = used_of(m);
	size_t n = 0;

	for (uint32_t i = c->low; i < used; i++) {
		if (is_taken(c, i) || !is_complete(ticks_of(m, i)))
			continue;
		to[n].event = m->event[i];
		take_place(c, i);
		if (!is_complete(to[n].event.ticks) || to[n].event.ticks == UINT64_MAX)
			continue;
		copy_values(c, m, i, &to[n], value);
		copy_stack(t, m, i, &to[n]);
		n++;
	}
	while (c->low < used && is_taken(c, c->low))
		c->low++;
	return n;
}

static void add_shorter(struct page_trace *t, struct chunk *c, const struct sb_page_chunk *m)
{
	uint64_t now = __atomic_load_n(&m->shorter, __ATOMIC_RELAXED);

	t->sums.shorter += now - c->shorter;
	c->shorter = now;
}

/* The start of any complete event that was not taken; 0: there is none. */
static uint64_t first_of(const struct chunk *c, const struct sb_page_chunk *m)
{
	uint32_t used = used_of(m);

	for (uint32_t i = c->low; i < used; i++)
		if (!is_taken(c, i) && is_complete(ticks_of(m, i)))
			return m->event[i].start | 1;
	return 0;
}

static size_t read_chunk(struct page_trace *t, uint32_t number, bool ask,
			 const struct page_trace_ops *ops, void *ctx)
{
	struct page_event event[SB_PAGE_EVENTS];
	uint64_t value[SB_PAGE_EVENTS][2];
	struct sb_page_chunk *m = chunk_at(t, number);
	struct chunk *c = &t->chunk[number];
	uint64_t owner = __atomic_load_n(&m->owner, __ATOMIC_RELAXED), first = first_of(c, m);
	uint32_t proc = proc_of(t, m);
	size_t n;

	add_shorter(t, c, m);
	if (!first || !proc || (ask && !ops->ready(ctx, proc, owner, first)))
		return 0;
	if (t->stacks)
		page_stacks_find(t->stacks);
	n = copy_events(t, c, m, event, value);
	c->moved = true;
	if (n)
		ops->events(ctx, proc, owner, event, n);
	t->sums.events += n;
	return n;
}

static bool is_full(const struct page_trace *t, uint32_t number)
{
	const struct sb_page_chunk *m = chunk_at(t, number);

	return used_of(m) == SB_PAGE_EVENTS && t->chunk[number].n >= limit_of(m);
}

/* No thread has it any more: zeros, and to be offered again. */
static void recycle(struct page_trace *t, uint32_t number)
{
	add_shorter(t, &t->chunk[number], chunk_at(t, number));
	memset(chunk_at(t, number), 0, sizeof(struct sb_page_chunk));
	t->chunk[number] = (struct chunk){ 0 };
	t->idle[t->n_idle++] = number;
}

size_t page_trace_drain(struct page_trace *t, const struct page_trace_ops *ops, void *ctx,
			size_t most)
{
	size_t n = 0, kept = 0;

	find_taken(t);
	/* Chunks keep their order, which is that of the events of a thread. */
	for (size_t i = 0; i < t->n_out; i++) {
		uint32_t number = t->out[i];

		if (n < most)
			n += read_chunk(t, number, true, ops, ctx);
		if (n < most && is_full(t, number))
			recycle(t, number);
		else
			t->out[kept++] = number;
	}
	t->n_out = kept;
	offer_idle(t);
	return n;
}

/* Is it the chunk of the thread that has this FS base now? */
static bool is_current(const struct page_trace *t, uint32_t number, uint32_t proc, uint64_t owner)
{
	const struct sb_page_calls *calls = (const void *)((char *)t->page->hdr +
							   t->page->lay.calls_off +
							   proc * sizeof(*calls));
	const struct sb_page_thread *group =
		&calls->thread[(owner * MIX >> (64 - GROUP_BITS)) * GROUP];

	for (int i = 0; i < GROUP; i++)
		if (__atomic_load_n(&group[i].owner, __ATOMIC_RELAXED) == owner &&
		    __atomic_load_n(&group[i].chunk, __ATOMIC_RELAXED) == number + 1)
			return true;
	return false;
}

/* Records that were begun and never completed. Their own place says how many follow it. */
static void count_holes(struct page_trace *t, uint32_t number)
{
	const struct sb_page_chunk *m = chunk_at(t, number);
	uint32_t used = used_of(m), limit = limit_of(m);

	if (used > limit)
		used = limit;
	for (uint32_t i = 0; i < used; i++) {
		if (is_taken(&t->chunk[number], i))
			continue;
		t->sums.lost++;
		i += m->event[i].more;
	}
}

void page_trace_reclaim(struct page_trace *t, const struct page_trace_ops *ops, void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n_out; i++) {
		uint32_t number = t->out[i], proc = proc_of(t, chunk_at(t, number));
		uint64_t owner = chunk_at(t, number)->owner;
		bool moved = t->chunk[number].moved;

		t->chunk[number].moved = false;
		if (moved || !proc || is_current(t, number, proc, owner) ||
		    !ops->dead(ctx, proc, owner)) {
			t->out[kept++] = number;
			continue;
		}
		read_chunk(t, number, false, ops, ctx);
		count_holes(t, number);
		recycle(t, number);
	}
	t->n_out = kept;
	if (t->stacks)
		page_stacks_reclaim(t->stacks, STACK_AGE_NS);
}

void page_trace_end(struct page_trace *t, uint32_t proc, const struct page_trace_ops *ops,
		    void *ctx)
{
	size_t kept = 0;

	find_taken(t);
	for (size_t i = 0; i < t->n_out; i++) {
		uint32_t number = t->out[i], of = proc_of(t, chunk_at(t, number));

		if (proc != UINT32_MAX && of != proc) {
			t->out[kept++] = number;
			continue;
		}
		read_chunk(t, number, false, ops, ctx);
		count_holes(t, number);
		recycle(t, number);
	}
	t->n_out = kept;
	offer_idle(t);
}

struct page_trace_sums page_trace_sums(const struct page_trace *t)
{
	struct page_trace_sums sums = t->sums;

	sums.stacks_lost = t->stacks ? page_stacks_lost(t->stacks) : 0;
	sums.lost += __atomic_load_n(&rear(t)->lost, __ATOMIC_RELAXED);
	sums.unseen += __atomic_load_n(&rear(t)->unseen, __ATOMIC_RELAXED);
	sums.shorter += __atomic_load_n(&rear(t)->shorter, __ATOMIC_RELAXED);
	return sums;
}
