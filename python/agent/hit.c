/* SPDX-License-Identifier: MIT */
#include "hit.h"

#include "cpu.h"
#include "py.h"
#include "turn.h"

#define LONG_SPINS_PER_S 20000 /* a spin of that fraction of a second or more is long */

/*
 * The place of a hit's count: a slot of the thread's own, or a shared one that needs a lock prefix.
 */
struct place {
	struct sb_page_slot *slot;
	bool owned;
	uint64_t hits; /* of the slot, this one included */
};

static struct sb_page_slot *slot_at(struct sb_page_counts *counts, uint64_t off)
{
	return (struct sb_page_slot *)((char *)counts->slot + off);
}

static void slot_add(const struct place *at, uint64_t *p, uint64_t n)
{
	if (at->owned)
		cpu_add(p, n);
	else
		__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static struct place count(const struct hit *hit, const struct sb_page_cell *cell)
{
	const struct page *page = hit->page;
	struct sb_page_counts *counts = page_counts(page, cell);
	uint64_t me = ~cpu_thread(), owner,
		 spread = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	struct place at = { .slot = slot_at(counts, (uint32_t)~me >> 2 & page->slot_mask) };

	if (hit->each)
		__atomic_fetch_add(hit->each, 1, __ATOMIC_RELAXED);
	owner = __atomic_load_n(&at.slot->owner, __ATOMIC_RELAXED);
	at.owned = owner == me;
	if (!at.owned && !owner)
		at.owned = __atomic_compare_exchange_n(&at.slot->owner, &owner, me, false,
						       __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (at.owned) {
		cpu_add(&at.slot->hits, 1);
		at.hits = at.slot->hits;
		return at;
	}
	at.slot = slot_at(counts, ((uint64_t)page->slots << 10) + (spread >> 2 & 15 << 10));
	at.hits = __atomic_add_fetch(&at.slot->hits, 1, __ATOMIC_RELAXED);
	return at;
}

/* Whether the thread filter lets this thread pass. */
static bool thread_passes(const struct page *page, const struct sb_page_cell *cell)
{
	uint64_t number = __atomic_load_n(&cell->threads, __ATOMIC_ACQUIRE) & (SB_PAGE_TABLES - 1);
	const struct sb_page_threads *table = (const void *)(page->base + page->threads_off);
	uint64_t me = cpu_thread(), i = me >> 6;

	for (uint64_t n = 0; n < SB_PAGE_TABLE_SLOTS; n++, i++) {
		uint64_t entry = __atomic_load_n(
			&table[number].fsbase[i & (SB_PAGE_TABLE_SLOTS - 1)], __ATOMIC_RELAXED);

		if (entry == me)
			return true;
		if (!entry)
			return false;
	}
	return false;
}

static uint32_t bucket_of(int64_t excess)
{
	uint64_t v = excess < 0 ? 0 : (uint64_t)excess >> SB_PAGE_BUCKET_SHIFT;
	uint32_t e, n;

	if (v < 4)
		return (uint32_t)v;
	e = 63 - (uint32_t)__builtin_clzll(v);
	n = (e - 1) * 4 + (v >> (e - 2) & 3);
	return n < SB_PAGE_BUCKETS ? n : SB_PAGE_BUCKETS - 1;
}

/* A residual is never beyond its bound, whatever the memory contains. */
static int64_t within(int64_t residual, const struct sb_page_cell *cell)
{
	int64_t bound = (int64_t)cell->residual_max;

	return residual > bound ? bound : residual < -bound ? -bound : residual;
}

/*
 * delay: the delay set when this call began; want: the time to spend in it; given: the time that it
 * took. All include the hook's own cost. As in the stub: time beyond `want` by more than the limit
 * is an interruption, and no residual outlives a call that was delayed to its end.
 */
static void account(const struct sb_page_cell *cell, const struct place *at, uint64_t delay,
		    uint64_t want, uint64_t given)
{
	struct sb_page_slot *slot = at->slot;
	int64_t excess;

	if (given > slot->max_ticks)
		slot->max_ticks = given;
	if (given - want > cell->overrun_limit) {
		__atomic_fetch_add(&slot->overrun_ticks, given - want, __ATOMIC_RELAXED);
		given = want;
	}
	excess = (int64_t)(given - delay);
	slot->residual_ticks = within(slot->residual_ticks + excess, cell);
	slot_add(at, &slot->injected_ticks, given);
	slot_add(at, &slot->bucket[bucket_of(excess)], 1);
}

/* Spins until `want` ticks after start. False: a change ended it early. */
static bool spin(const struct page *page, const struct sb_page_cell *cell, uint64_t start,
		 uint64_t want, uint64_t *spent)
{
	const struct sb_page_header *h = page_header(page);
	uint32_t generation = __atomic_load_n(&h->generation, __ATOMIC_RELAXED);
	uint64_t now, pause_above = cell->pause_above;

	for (;;) {
		now = cpu_ticks();
		*spent = now - start;
		if (*spent >= want)
			return true;
		if (page_state(cell) < SB_STATE_SLOW ||
		    __atomic_load_n(&h->generation, __ATOMIC_RELAXED) != generation ||
		    (int64_t)(now - __atomic_load_n(&h->lease_until, __ATOMIC_RELAXED)) >= 0)
			return false;
		if (want - *spent >= pause_above)
			cpu_relax();
	}
}

static bool spins_aside(const struct hit *hit, uint64_t want)
{
	return py.threads && hit->last && want >= hit->page->tsc_hz / LONG_SPINS_PER_S;
}

/*
 * Where other threads run meanwhile, a thread in a long spin is detached from the interpreter:
 * otherwise a thread that has to stop all others, above all for garbage collection, would wait for
 * it.
 */
static __attribute__((noinline)) bool spin_aside(const struct page *page,
						 const struct sb_page_cell *cell, uint64_t start,
						 uint64_t want, uint64_t *spent)
{
	PyThreadState *state;
	bool whole;

	turn_enter();
	state = PyEval_SaveThread();
	whole = spin(page, cell, start, want, spent);
	PyEval_RestoreThread(state);
	turn_leave();
	return whole;
}

static void delay(struct hit *hit, const struct sb_page_cell *cell, const struct place *at,
		  uint64_t start)
{
	const struct sb_page_header *h = page_header(hit->page);
	int64_t left;
	uint64_t want, spent, cost = hit->cost, asked;
	struct sb_page_counts *counts;
	bool whole;

	if ((int64_t)(start - __atomic_load_n(&h->lease_until, __ATOMIC_RELAXED)) >= 0) {
		__atomic_fetch_add(&at->slot->lapsed, 1, __ATOMIC_RELAXED);
		return;
	}
	asked = __atomic_load_n(&cell->delay_ticks, __ATOMIC_RELAXED);
	left = (int64_t)(asked - cost) - within(at->slot->residual_ticks, cell);
	want = left < 0 ? 0 : (uint64_t)left;
	if (want > page_most(hit->page))
		want = page_most(hit->page);
	hit->cost = 0;
	whole = spins_aside(hit, want) ? spin_aside(hit->page, cell, start, want, &spent) :
					 spin(hit->page, cell, start, want, &spent);
	if (whole) {
		account(cell, at, asked, want + cost, spent + cost);
		return;
	}
	counts = page_counts(hit->page, cell);
	__atomic_fetch_add(&counts->cuts, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts->cut_ticks, spent + cost, __ATOMIC_RELAXED);
}

static void hit_slow(struct hit *hit, const struct sb_page_cell *cell)
{
	uint32_t flags = __atomic_load_n(&cell->flags, __ATOMIC_RELAXED);
	uint64_t start = flags & SB_CELL_DELAY ? cpu_ticks() : 0, every;
	struct place at;

	if (flags & SB_CELL_THREADS && !thread_passes(hit->page, cell))
		return;
	at = count(hit, cell);
	if (!(flags & SB_CELL_DELAY))
		return;
	every = __atomic_load_n(&cell->every, __ATOMIC_RELAXED);
	if (every > 1 && at.hits % every)
		return;
	delay(hit, cell, &at, start);
}

bool hit_passes(const struct page *page, const struct sb_page_cell *cell)
{
	uint32_t flags = __atomic_load_n(&cell->flags, __ATOMIC_RELAXED);

	return !(flags & SB_CELL_THREADS) || thread_passes(page, cell);
}

void hit_cell(struct hit *hit, const struct sb_page_cell *cell)
{
	uint32_t state = page_state(cell);

	if (state == SB_STATE_COUNT)
		count(hit, cell);
	else if (state != SB_STATE_OFF)
		hit_slow(hit, cell);
}
