/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
/*
 * Recorded calls, with the real stubs: each call is one event or is counted as lost, with its own
 * time and thread, whatever interrupts the stub, and whatever a target writes into its chunks.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include "steps.h"
#include "timed.h"
#include "inject/page-stacks.h"
#include "inject/page-trace.h"

enum { STACKS = 1024, STACK_BYTES = 256 };
enum { RECORDS = -1 }; /* instead of a number of a step */
enum { THREADS = 8, THREAD_CALLS = 40000, MOST_OWNERS = 64, ROUND_CHUNKS = 4 };

extern const char __executable_start, etext;

static struct timed timed;
static bool valued;  /* calls are recorded with their values */
static bool stacked; /* ... with their stacks */
static struct page_trace *trace;

/* What was read. */
static struct {
	size_t n, delays, stacks, stackless;
	uint64_t ticks[TIMED];
	uint64_t calls[TIMED];
	uint64_t values[TIMED]; /* the first of each call, added up */
	uint64_t last;		/* the end of the event before, of one thread */
	bool in_order;		/* check that */
	bool refuse;
	struct {
		uint64_t owner;
		size_t n;
	} of[MOST_OWNERS];
} got;

/* A call that is interrupted at each instruction. */
static struct {
	int steps, at, ran; /* all so far; the one that counts, 0: each; those that counted */
	bool fills;	    /* the handler makes calls until the chunk is read and another one's */
	bool rounds;	    /* ... until each chunk has been offered again */
	struct steps *way;  /* which instructions there are is recorded there, or is known */
} trap;

static bool ready(void *ctx, uint32_t proc, uint64_t owner, uint64_t first)
{
	(void)ctx;
	(void)owner;
	(void)first;
	assert_int_equal(proc, 1);
	return !got.refuse;
}

static void count_owner(uint64_t owner, size_t n)
{
	int i = 0;

	while (got.of[i].owner && got.of[i].owner != owner)
		i++;
	assert_in_range(i, 0, MOST_OWNERS - 1);
	got.of[i].owner = owner;
	got.of[i].n += n;
}

static void nothing(void *ctx)
{
	(void)ctx;
}

static void calls_other(void *ctx);

/* Its function returns its first argument; the second one is what it calls. */
static void check_values(const struct page_event *e)
{
	assert_int_equal(e->event.more, valued ? 2 : 0);
	if (!valued)
		return;
	assert_int_equal(e->event.known, SB_KNOWN_RETURNED);
	assert_int_equal(e->value[0], e->value[2]);
	assert_true(e->value[1] == (uintptr_t)nothing || e->value[1] == (uintptr_t)calls_other);
	got.values[e->event.span_bit] += e->value[0];
}

/* Called from here, on a stack whose end is unknown. */
static void check_stack(uint64_t owner, const struct page_event *e)
{
	const struct sb_page_stack *s = e->stack;
	uint64_t whole;

	if (!stacked || !s) {
		assert_null(s);
		got.stackless += stacked;
		return;
	}
	got.stacks++;
	whole = 4096 - s->sp % 4096;
	assert_true(s->owner == owner && s->start == e->event.start);
	assert_int_equal(s->calls_off, sizeof(struct sb_page_calls));
	assert_int_equal(s->size, whole < STACK_BYTES ? whole : STACK_BYTES);
	assert_int_equal(s->end, whole > STACK_BYTES ? SB_STACK_CUT : SB_STACK_PAGE);
	/* Its return address is in this program. */
	assert_true(s->word[0] - (uint64_t)(uintptr_t)&__executable_start <
		    (uint64_t)(&etext - &__executable_start) + 4096);
}

static void events(void *ctx, uint32_t proc, uint64_t owner, const struct page_event *e, size_t n)
{
	(void)ctx;
	assert_int_equal(proc, 1);
	count_owner(owner, n);
	for (size_t i = 0; i < n; i++) {
		const struct sb_page_event *event = &e[i].event;
		uint64_t end = event->start + event->ticks - 1;

		assert_in_range(event->span_bit, 0, TIMED - 1);
		assert_true(event->start && event->ticks);
		if (got.in_order)
			assert_true(end + 10000 >= got.last);
		got.last = end;
		if (event->kind == SB_EVENT_DELAY) {
			got.delays++;
			continue;
		}
		assert_int_equal(event->kind, SB_EVENT_CALL);
		check_values(&e[i]);
		check_stack(owner, &e[i]);
		got.n++;
		got.calls[event->span_bit]++;
		got.ticks[event->span_bit] += event->ticks - 1;
	}
}

static bool dead(void *ctx, uint32_t proc, uint64_t owner)
{
	(void)proc;
	return ctx && *(uint64_t *)ctx == owner;
}

static const struct page_trace_ops ops = { ready, events, dead };

static void call(int i, void (*inside)(void *), void *ctx)
{
	assert_ptr_equal(timed_function(&timed, i)(ctx, inside), ctx);
}

static void calls_other(void *ctx)
{
	call(1, nothing, ctx);
}

static void drain(void)
{
	while (page_trace_drain(trace, &ops, NULL, SIZE_MAX))
		;
}

static struct sb_page_taken *taken(void)
{
	return (void *)((char *)timed.page.hdr + timed.page.lay.chunks_off);
}

static struct sb_page_chunk *chunk(int i)
{
	return (struct sb_page_chunk *)(taken() + 1) + i;
}

static void make(uint32_t chunks, uint64_t min, double rate)
{
	timed_make_like(&timed,
			&(struct timed){ .values = valued,
					 .stacks = stacked ? STACKS : 0,
					 .stack_bytes = STACK_BYTES },
			true, chunks);
	memset(&got, 0, sizeof(got));
	trace = page_trace_open(&timed.page, min, rate);
}

static int teardown(void **state)
{
	(void)state;
	page_trace_free(trace);
	timed_free(&timed);
	valued = stacked = false;
	trap.rounds = false;
	signal(SIGTRAP, SIG_DFL);
	return 0;
}

static struct sb_page_span sum_of(int i)
{
	int slots;

	return timed_sum(&timed, i, &slots);
}

/* Events and sums are of the same calls. */
static void agrees(void)
{
	for (int i = 0; i < TIMED; i++) {
		assert_int_equal(got.calls[i], sum_of(i).calls);
		assert_int_equal(got.ticks[i], sum_of(i).ticks);
		if (!valued)
			continue;
		assert_int_equal(got.values[i], sum_of(i).sum[0]);
		assert_int_equal(got.values[i], sum_of(i).sum[2]);
		assert_int_equal(got.calls[i], sum_of(i).summed[0]);
		assert_int_equal(got.calls[i], sum_of(i).summed[2]);
		assert_int_equal(sum_of(i).summed[1], 0);
	}
}

static void test_each_call(void **state)
{
	(void)state;
	make(64, 0, 0);
	got.in_order = true;
	for (int i = 0; i < 3000; i++) {
		call(0, calls_other, NULL);
		if (i % 700 == 0)
			drain();
	}
	drain();
	assert_int_equal(got.n, 6000);
	agrees();
	assert_int_equal(page_trace_sums(trace).events, 6000);
	assert_int_equal(page_trace_sums(trace).lost, 0);
}

static void test_values(void **state)
{
	(void)state;
	valued = true;
	make(64, 0, 0);
	got.in_order = true;
	for (uintptr_t i = 0; i < 3000; i++) {
		call(0, calls_other, (void *)i);
		if (i % 100 == 0)
			drain();
	}
	drain();
	assert_int_equal(got.n, 6000);
	assert_int_equal(got.values[1], 2999 * 3000 / 2);
	agrees();
	assert_int_equal(page_trace_sums(trace).events, 6000);
	assert_int_equal(page_trace_sums(trace).lost, 0);
}

/* ---- stacks ---- */

static struct sb_page_stacks_taken *stacks_taken(void)
{
	return (void *)((char *)timed.page.hdr + timed.page.lay.stacks_off);
}

static struct sb_page_stack *stack_place(uint32_t i)
{
	return (void *)((char *)(stacks_taken() + 1) + (size_t)i * timed.page.lay.stack_size);
}

static void test_stacks(void **state)
{
	(void)state;
	for (int values = 0; values < 2; values++) {
		stacked = true;
		valued = values;
		make(64, 0, 0);
		for (int i = 0; i < 3000; i++) {
			call(0, calls_other, NULL);
			if (i % 20 == 0)
				drain();
		}
		drain();
		assert_int_equal(got.n, 6000);
		assert_int_equal(got.stacks, 6000);
		assert_int_equal(page_trace_sums(trace).stacks_lost, 0);
		agrees();
		if (!values)
			teardown(NULL);
	}
}

/* No place is free: the call is recorded without its stack; later ones have theirs. */
static void test_stacks_lost(void **state)
{
	(void)state;
	stacked = true;
	make(16, 0, 0);
	for (int i = 0; i < 1200; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 1200);
	assert_int_equal(got.stacks, STACKS);
	assert_int_equal(page_trace_sums(trace).stacks_lost, 1200 - STACKS);
	call(0, nothing, NULL);
	drain();
	assert_int_equal(got.stacks, STACKS + 1);
}

/* What is not as its thread wrote it is lost, and never another call's. */
static void test_stacks_spoiled(void **state)
{
	(void)state;
	for (int kind = 0; kind < 11; kind++) {
		struct sb_page_more *more;

		stacked = true;
		make(16, 0, 0);
		call(0, nothing, NULL);
		call(0, nothing, NULL);
		more = (void *)&chunk(0)->event[1]; /* behind the first event */
		assert_true(more->value[0] == 1 && stack_place(0)->size);
		switch (kind) {
		case 0:
			stack_place(0)->word[3] ^= 1;
			break;
		case 1:
			stack_place(0)->size = STACK_BYTES + 8;
			break;
		case 2:
			stack_place(0)->size -= 4;
			break;
		case 3:
			stack_place(0)->owner ^= 1;
			break;
		case 4:
			stack_place(0)->start++;
			break;
		case 5:
			stack_place(0)->calls_off = 0;
			break;
		case 6:
			more->value[0] = 2;
			break; /* the other call's */
		case 7:
			stack_place(0)->frames = 8;
			break;
		case 8:
			stack_place(0)->frames = SB_PAGE_FRAMES + 8;
			break;
		case 9:
			stack_place(0)->frames_end = SB_FRAMES_FULL;
			break;
		default:
			more->value[0] = UINT64_MAX;
		}
		drain();
		assert_int_equal(got.n, 2);
		assert_int_equal(got.stacks, 1);
		assert_int_equal(page_trace_sums(trace).stacks_lost, 1);
		if (kind < 10)
			teardown(NULL);
	}
}

/* A place of a thread that has ended in the middle is offered again. */
static void test_stacks_never_used(void **state)
{
	struct page_stacks *s;
	struct sb_page_stacks *list;

	(void)state;
	stacked = true;
	make(16, 0, 0);
	list = (void *)((char *)timed.page.hdr + timed.page.lay.stack_list_off);
	list->offered = 0;
	s = page_stacks_open(&timed.page);
	assert_int_equal(list->offered, STACKS);
	stacks_taken()->taken = 3;
	page_stacks_find(s);
	page_stacks_reclaim(s, UINT64_MAX);
	assert_int_equal(list->offered, STACKS);
	page_stacks_reclaim(s, 0);
	assert_int_equal(list->offered, STACKS + 3);
	assert_int_equal(list->slot[1], 1);
	page_stacks_free(s);
}

static struct sb_page_stack last;

static void keeps_last(void *ctx, uint32_t proc, uint64_t owner, const struct page_event *e,
		       size_t n)
{
	(void)ctx, (void)proc, (void)owner;
	assert_non_null(e[n - 1].stack);
	last = *e[n - 1].stack;
}

/* A copy ends with the stack where that is known: of the first thread here, by its last address. */
static void test_stacks_end(void **state)
{
	const struct page_trace_ops keep = { ready, keeps_last, dead };

	(void)state;
	stacked = true;
	for (uint64_t above = 0; above < 2 * STACK_BYTES; above += 64) {
		struct timed like = { .stacks = 1, .stack_bytes = STACK_BYTES };

		make(1, 0, 0);
		call(0, nothing, NULL);
		page_trace_drain(trace, &keep, NULL, SIZE_MAX);
		teardown(NULL);
		like.stack = last.sp + 8 + above;
		timed_make_like(&timed, &like, true, 1);
		trace = page_trace_open(&timed.page, 0, 0);
		call(0, nothing, NULL);
		page_trace_drain(trace, &keep, NULL, SIZE_MAX);
		assert_int_equal(last.sp + 8 + above, like.stack);
		assert_int_equal(last.size, 8 + above < STACK_BYTES ? 8 + above : STACK_BYTES);
		assert_int_equal(last.end, 8 + above > STACK_BYTES ? SB_STACK_CUT : SB_STACK_WHOLE);
		stacked = true;
		if (above + 64 < 2 * STACK_BYTES)
			teardown(NULL);
		stacked = true;
	}
}

/* Delays have none. */
static void test_stacks_delays(void **state)
{
	(void)state;
	stacked = true;
	make(16, 0, 0);
	timed.cell[0]->flags = SB_CELL_SPANS | SB_CELL_DELAY | SB_CELL_DELAY_EXIT;
	timed.cell[0]->delay_ticks = 5000;
	timed.cell[0]->overrun_limit = 1 << 20;
	timed.cell[0]->residual_max = 1 << 10;
	for (int i = 0; i < 50; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 50);
	assert_int_equal(got.delays, 100);
	assert_int_equal(got.stacks, 50);
}

static void test_values_full(void **state)
{
	(void)state;
	valued = true;
	make(4, 0, 0);
	for (int i = 0; i < 1000; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 4 * (SB_PAGE_EVENTS / 3));
	assert_int_equal(page_trace_sums(trace).lost, 1000 - got.n);
}

/* A record that was begun, up to anywhere, and never ended is one lost call, and no other's. */
static void test_values_hole(void **state)
{
	(void)state;
	valued = true;
	for (uint32_t written = 0; written < 3; written++) {
		struct sb_page_event *event;

		make(4, 0, 0);
		call(0, nothing, NULL);
		event = &chunk(0)->event[chunk(0)->used];
		chunk(0)->used += 3;
		event[0].kind = SB_EVENT_CALL;
		event[0].more = 2;
		for (uint32_t i = 1; i <= written; i++)
			event[i].ticks = SB_EVENT_MORE;
		call(0, nothing, NULL);
		drain();
		assert_int_equal(got.n, 2);
		page_trace_end(trace, 1, &ops, NULL);
		assert_int_equal(got.n, 2);
		assert_int_equal(page_trace_sums(trace).lost, 1);
		if (written < 2) {
			page_trace_free(trace);
			timed_free(&timed);
		}
	}
}

/* What is not as it was kept at the entry is not a call's: it is missing, and never wrong. */
static void spoils(void *ctx)
{
	for (int i = 0; i < SB_PAGE_CALL_SETS; i++)
		timed.calls->arguments[i][0].argument[(uintptr_t)ctx] ^= 1;
	for (int i = 0; i < SB_PAGE_CALL_SETS; i++)
		timed.calls->arguments[i][1].argument[(uintptr_t)ctx] ^= 1;
}

static void test_values_spoiled(void **state)
{
	(void)state;
	valued = true;
	make(4, 0, 0);
	for (uintptr_t i = 0; i < 6; i++)
		call(0, spoils, (void *)i);
	drain();
	assert_int_equal(got.n, 0);
	assert_int_equal(sum_of(0).begun, 6);
	assert_int_equal(sum_of(0).calls, 0);
	assert_int_equal(sum_of(0).sum[0], 0);
}

static void *result_of(void *value)
{
	call(0, nothing, value);
	return NULL;
}

/* Types: cut to their size, negative ones left out, and a sum that is too large stays known as
 * such. */
static void test_values_types(void **state)
{
	const struct {
		uint16_t descriptor;
		uint64_t value[3], sum, summed;
	} rows[] = {
		{ 0, { 5, 1ull << 40, 7 }, (1ull << 40) + 12, 3 },
		{ 32 << SB_VALUE_SHIFT, { 5, UINT64_MAX, 1ull << 40 }, 5 + 0xffffffffull, 3 },
		{ 56 << SB_VALUE_SHIFT, { 0x1ff, 1, 0x100 }, 0x100, 3 },
		{ SB_VALUE_SIGNED, { 5, UINT64_MAX, 7 }, 12, 2 },
		{ SB_VALUE_SIGNED | 32 << SB_VALUE_SHIFT, { 5, 0xffffffff, 0xabc00000007 }, 12, 2 },
		{ SB_VALUE_SIGNED | 48 << SB_VALUE_SHIFT, { 0x8000, 0x7fff, 0x10001 }, 0x8000, 2 },
		{ SB_VALUE_BOOL | 56 << SB_VALUE_SHIFT, { 0x100, 0x1ff, 1 }, 2, 3 },
		{ 0, { UINT64_MAX, 1, 7 }, UINT64_MAX, 3 },
	};

	(void)state;
	valued = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		for (int own = 0; own < 2; own++) {
			struct sb_page_span sum;
			int slots;

			timed_make_valued(&timed, own, 0, true);
			timed.cell[0]->value[0] = SB_VALUE_SUM | 1 | rows[i].descriptor;
			for (int k = 0; k < 3; k++)
				result_of((void *)(uintptr_t)rows[i].value[k]);
			sum = timed_sum(&timed, 0, &slots);
			assert_int_equal(sum.calls, 3);
			assert_true(sum.sum[0] == rows[i].sum);
			assert_int_equal(sum.summed[0], rows[i].summed);
			timed_free(&timed);
		}
	}
	make(4, 0, 0); /* for teardown */
}

/* Where no chunk is free, calls are lost and counted; later ones are recorded again. */
static void test_full(void **state)
{
	(void)state;
	make(4, 0, 0);
	for (int i = 0; i < 1000; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 4 * SB_PAGE_EVENTS);
	assert_int_equal(page_trace_sums(trace).lost, 1000 - got.n);
	for (int i = 0; i < 100; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 4 * SB_PAGE_EVENTS + 100);
}

static void spends(void *ctx)
{
	uint64_t from = arch->clock_read();

	while (arch->clock_read() - from < (uint64_t)(uintptr_t)ctx)
		;
}

static void test_least(void **state)
{
	(void)state;
	make(16, 50000, 0);
	for (int i = 0; i < 100; i++) {
		call(0, nothing, NULL);
		call(0, spends, (void *)200000);
	}
	drain();
	assert_in_range(got.n, 100, 105); /* a call may be interrupted for as long */
	assert_int_equal(page_trace_sums(trace).shorter, 200 - got.n);
}

static void test_every(void **state)
{
	(void)state;
	make(16, 0, 0);
	timed.cell[0]->every = 10;
	for (int i = 0; i < 1000; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 100);
	assert_int_equal(page_trace_sums(trace).shorter, 900);
}

static void test_delays(void **state)
{
	(void)state;
	make(16, 0, 0);
	timed.cell[0]->flags = SB_CELL_SPANS | SB_CELL_DELAY;
	timed.cell[0]->delay_ticks = 5000;
	timed.cell[0]->overrun_limit = 1 << 20;
	timed.cell[0]->residual_max = 1 << 10;
	for (int i = 0; i < 100; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 100);
	assert_int_equal(got.delays, 100);
	agrees();
}

/* A thread that is not ready keeps its events, until its process ends. */
static void test_not_ready(void **state)
{
	(void)state;
	make(16, 0, 0);
	got.refuse = true;
	for (int i = 0; i < 500; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 0);
	page_trace_end(trace, 2, &ops, NULL);
	assert_int_equal(got.n, 0);
	page_trace_end(trace, 1, &ops, NULL);
	assert_int_equal(got.n, 500);
	assert_int_equal(page_trace_sums(trace).lost, 0);
}

/* A process that is not registered has no chunks. */
static void test_unseen(void **state)
{
	(void)state;
	make(16, 0, 0);
	timed.record.calls_off = 0;
	for (int i = 0; i < 50; i++)
		call(0, nothing, NULL);
	drain();
	assert_int_equal(got.n, 0);
	assert_int_equal(page_trace_sums(trace).unseen, 50);
}

/* A place that was reserved and not completed is one lost call, and holds up no other. */
static void test_hole(void **state)
{
	(void)state;
	make(4, 0, 0);
	for (int i = 0; i < 10; i++)
		call(0, nothing, NULL);
	chunk(0)->used++;
	for (int i = 0; i < 2000; i++) {
		call(0, nothing, NULL);
		if (i % 100 == 0)
			drain();
	}
	drain();
	assert_int_equal(got.n, 2010);
	assert_int_equal(page_trace_sums(trace).lost, 0);
	page_trace_end(trace, 1, &ops, NULL);
	assert_int_equal(page_trace_sums(trace).lost, 1);
}

static void *one_call(void *owner)
{
	call(0, nothing, NULL);
	__asm__("mov %%fs:0, %0" : "=r"(*(uint64_t *)owner));
	*(uint64_t *)owner = ~*(uint64_t *)owner;
	return NULL;
}

/* The chunk of a thread that has ended is taken back once another one has its place. */
static void test_reclaim(void **state)
{
	uint64_t owner = 0;
	pthread_t thread;

	(void)state;
	make(4, 0, 0);
	pthread_create(&thread, NULL, one_call, &owner);
	pthread_join(thread, NULL);
	drain();
	assert_int_equal(got.n, 1);
	page_trace_reclaim(trace, &ops, &owner);
	page_trace_reclaim(trace, &ops, &owner);
	assert_int_equal(chunk(0)->owner, owner); /* a new thread at this address goes on with it */
	for (int i = 0; i < SB_PAGE_CALL_THREADS; i++)
		if (timed.calls->thread[i].owner == owner)
			timed.calls->thread[i].owner = 1;
	page_trace_reclaim(trace, &ops, NULL);
	assert_int_equal(chunk(0)->owner, owner); /* it may be alive */
	page_trace_reclaim(trace, &ops, &owner);
	assert_int_equal(chunk(0)->owner, 0);
}

/* ---- threads ---- */

static volatile bool over;

static void *reads(void *ctx)
{
	(void)ctx;
	while (!over)
		page_trace_drain(trace, &ops, NULL, 1000);
	return NULL;
}

static void *makes_calls(void *ctx)
{
	for (int i = 0; i < THREAD_CALLS; i++)
		call(0, calls_other, valued ? (void *)(uintptr_t)i : ctx);
	return NULL;
}

/* Beside a reader, with few chunks: none is lost without being counted, none is there twice. */
static void threads(uint32_t chunks, uint64_t mask)
{
	pthread_t thread[THREADS], reader;

	make(chunks, 0, 0);
	/* Threads that share a group of records take them from each other. */
	for (int i = 0; i < SB_PAGE_CALL_THREADS; i++)
		if ((uint64_t)i & mask)
			timed.calls->thread[i] = (struct sb_page_thread){ .owner = 1, .call = 1 };
	over = false;
	pthread_create(&reader, NULL, reads, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, makes_calls, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	over = true;
	pthread_join(reader, NULL);
	page_trace_end(trace, 1, &ops, NULL);
	assert_int_equal(got.n + page_trace_sums(trace).lost, THREADS * THREAD_CALLS * 2);
	assert_int_equal(page_trace_sums(trace).unseen, 0);
	for (int i = 0; i < MOST_OWNERS && got.of[i].owner; i++)
		assert_true(got.of[i].n <= THREAD_CALLS * 2 * THREADS);
}

static void test_threads(void **state)
{
	(void)state;
	threads(4096, 0);
	if (!page_trace_sums(trace).lost) /* else the reader had no processor */
		agrees();
}

static void test_threads_few_chunks(void **state)
{
	(void)state;
	threads(16, 0);
}

static void test_threads_one_record(void **state)
{
	(void)state;
	threads(256, ~0ull << 2);
}

static void test_limit(void **state)
{
	(void)state;
	make(64, 0, 1000);
	for (int i = 0; i < 5000; i++)
		call(0, nothing, NULL);
	drain();
	assert_in_range(got.n, 100, 1000);
	assert_int_equal(got.n + page_trace_sums(trace).lost, 5000);
}

/* ---- interrupted at each instruction ---- */

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uint64_t pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (trap.way && steps_arrived(trap.way, u)) {
		pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
		trap.steps = trap.way->before;
	}
	if (pc < timed.env.common || pc >= timed.end[1].stub + TIMED_STUB)
		return;
	if (trap.way && trap.at == RECORDS)
		steps_record(trap.way, pc);
	if (++trap.steps != trap.at && trap.at)
		return;
	trap.ran++;
	if (trap.at)
		u->uc_mcontext.gregs[REG_EFL] &= ~0x100; /* no further steps */
	for (int i = 0; i < (trap.fills ? 2 * SB_PAGE_EVENTS : 1); i++)
		call(1, nothing, (void *)7);
	if (trap.fills)
		drain();
	for (int i = 0; trap.rounds && i < 2 * ROUND_CHUNKS; i++) {
		for (int k = 0; k < SB_PAGE_EVENTS; k++)
			call(1, nothing, (void *)7);
		drain();
	}
}

static __attribute__((noinline)) void stepped(timed_fn fn)
{
	void *ctx = (void *)5, *result;
	void (*inside)(void *) = nothing;
	uint64_t flag = trap.way && trap.way->planted ? 0 : STEP_FLAG;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\torq %[flag], (%%rsp)\n\tpopf\n\t"
			 "call *%[fn]\n\t"
			 "pushf\n\tandq $~0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp"
			 : "=a"(result), "+D"(ctx), "+S"(inside)
			 : [fn] "b"(fn), [flag] "r"(flag)
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory");
	assert_ptr_equal(result, (void *)5);
}

/*
 * A handler at every instruction records calls of its own, into the same chunk, or until that chunk
 * is full, read, and sbinject's or another owner's again.
 */
static void interrupted(uint32_t chunks, bool fills, int rounds)
{
	const int each = fills ? 2 * SB_PAGE_EVENTS : 1;

	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	uint64_t calls;

	make(chunks, 0, 0);
	sigaction(SIGTRAP, &sa, NULL);
	trap.ran = 0;
	trap.fills = fills;
	for (int i = 0; i < rounds; i++) {
		trap.steps = 0;
		trap.at = fills ? i + 1 : 0;
		stepped(timed_function(&timed, 0));
		drain();
		if (trap.steps < trap.at) /* it has no more instructions */
			rounds = i + 1;
	}
	page_trace_end(trace, 1, &ops, NULL);
	calls = sum_of(0).calls + sum_of(1).calls;
	assert_int_equal(sum_of(0).calls, rounds);
	assert_int_equal(calls, (uint64_t)(trap.ran * each + rounds));
	assert_true(trap.ran > 150);
	assert_int_equal(got.n + page_trace_sums(trace).lost, calls);
	if (!fills)
		assert_int_equal(page_trace_sums(trace).lost, 0);
	assert_true(page_trace_sums(trace).lost <= calls / 20);
	for (int i = 0; i < TIMED; i++)
		assert_true(got.ticks[i] <= sum_of(i).ticks);
}

static void test_handler_anywhere(void **state)
{
	(void)state;
	interrupted(64, false, 60);
	agrees();
}

static void test_handler_fills_chunks(void **state)
{
	(void)state;
	interrupted(8, true, 400);
}

static void one_round(bool values, bool stacks, int at)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	int was = trap.at;

	valued = values;
	stacked = stacks;
	make(ROUND_CHUNKS, 0, 0);
	trap.rounds = true;
	sigaction(SIGTRAP, &sa, NULL);
	trap.steps = trap.ran = 0;
	trap.at = at;
	trap.way->text = timed.text;
	if (at != RECORDS)
		steps_plant(trap.way, at);
	stepped(timed_function(&timed, 0));
	steps_remove(trap.way);
	trap.at = was;
	drain();
	page_trace_end(trace, 1, &ops, NULL);
	assert_int_equal(got.n + page_trace_sums(trace).lost, sum_of(0).calls + sum_of(1).calls);
	teardown(NULL);
}

/*
 * A thread that is taking a chunk is held up for as long as the list of chunks goes round: the
 * chunk is its own one all the same.
 */
static void goes_round(void)
{
	static struct steps way;
	bool values = valued, stacks = stacked;

	way.n = 0;
	trap.way = &way;
	for (trap.at = 1; trap.ran || trap.at == 1; trap.at++) {
		if (trap.at == 1)
			one_round(values, stacks, RECORDS);
		one_round(values, stacks, trap.at);
		if (trap.ran)
			continue;
		/* Not on that way: by steps. */
		way.n = 0;
		one_round(values, stacks, trap.at);
	}
	trap.way = NULL;
	assert_in_range(trap.at, 150, 5000);
	make(ROUND_CHUNKS, 0, 0); /* for teardown */
}

static void test_handler_goes_round(void **state)
{
	(void)state;
	goes_round();
}

static void test_values_handler_goes_round(void **state)
{
	(void)state;
	valued = true;
	goes_round();
}

static void test_stacks_handler_goes_round(void **state)
{
	(void)state;
	stacked = true;
	goes_round();
}

/* ... and takes a place for a stack in between. */
static void test_stacks_handler_anywhere(void **state)
{
	(void)state;
	stacked = true;
	interrupted(64, false, 60);
	assert_true(got.stacks > 60 && got.stackless < got.n / 2);
	assert_int_equal(got.stackless, page_trace_sums(trace).stacks_lost);
	agrees();
}

static void test_stacks_handler_fills_chunks(void **state)
{
	(void)state;
	stacked = valued = true;
	interrupted(8, true, 400);
	assert_int_equal(got.stackless, page_trace_sums(trace).stacks_lost);
}

static void test_values_handler_anywhere(void **state)
{
	(void)state;
	valued = true;
	interrupted(256, false, 60);
	agrees();
}

static void test_values_handler_fills_chunks(void **state)
{
	(void)state;
	valued = true;
	interrupted(32, true, 500);
}

static void test_values_threads(void **state)
{
	(void)state;
	valued = true;
	threads(4096, 0);
	if (!page_trace_sums(trace).lost)
		agrees();
}

static void test_values_threads_few_chunks(void **state)
{
	(void)state;
	valued = true;
	threads(16, 0);
}

/* ---- a hostile target ---- */

static uint64_t random_now;

static uint64_t next_random(void)
{
	random_now ^= random_now << 13;
	random_now ^= random_now >> 7;
	return random_now ^= random_now << 17;
}

static bool takes_any(void *ctx, uint32_t proc, uint64_t owner, uint64_t first)
{
	(void)ctx;
	(void)owner;
	(void)first;
	assert_int_equal(proc, 1);
	return true;
}

static void counts_only(void *ctx, uint32_t proc, uint64_t owner, const struct page_event *event,
			size_t n)
{
	(void)ctx;
	(void)owner;
	(void)event;
	assert_int_equal(proc, 1);
	got.n += n;
}

static void test_stacks_nonsense(void **state)
{
	const struct page_trace_ops any = { takes_any, counts_only, dead };
	size_t words;

	(void)state;
	stacked = true;
	make(16, 0, 0);
	random_now = 88172645463325252ull;
	words = (sizeof(struct sb_page_stacks_taken) + (size_t)STACKS * timed.page.lay.stack_size) /
		8;
	for (int round = 0; round < 2000; round++) {
		uint64_t *rear = (uint64_t *)stacks_taken();

		for (int i = 0; i < 20; i++)
			call(0, nothing, NULL);
		for (int i = 0; i < 200; i++)
			rear[next_random() % words] = next_random() >> (next_random() % 64);
		for (int i = 0; i < 5; i++)
			((uint64_t *)chunk(0))[next_random() % 512] = next_random() % 100;
		chunk(0)->calls_off = sizeof(struct sb_page_calls);
		stacks_taken()->taken = next_random() % 3 ? next_random() : next_random() % 2000;
		page_trace_drain(trace, &any, NULL, SIZE_MAX);
		page_trace_reclaim(trace, &any, NULL);
	}
	page_trace_end(trace, UINT32_MAX, &any, NULL);
	assert_true(page_trace_sums(trace).stacks_lost > 1000);
}

/* No number in the chunks leads anywhere else, and no more is read than they hold. */
static void test_nonsense(void **state)
{
	const struct page_trace_ops any = { takes_any, counts_only, dead };
	uint64_t *rear;
	size_t words;

	(void)state;
	make(16, 0, 0);
	rear = (uint64_t *)taken();
	words = (sizeof(struct sb_page_taken) + 16 * sizeof(struct sb_page_chunk)) / 8;
	random_now = 88172645463325252ull;
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 200; i++)
			rear[next_random() % words] = next_random() >> (next_random() % 64) &
						      ~(next_random() & 7);
		chunk((int)(next_random() % 16))->calls_off = sizeof(struct sb_page_calls);
		taken()->taken = next_random() % 3 ? next_random() : next_random() % 100;
		page_trace_drain(trace, &any, NULL, SIZE_MAX);
		page_trace_reclaim(trace, &any, NULL);
	}
	page_trace_end(trace, UINT32_MAX, &any, NULL);
	assert_true(got.n > 100);
	assert_true(got.n <= 2000ull * 16 * SB_PAGE_EVENTS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_each_call),
		TEST(test_full),
		TEST(test_least),
		TEST(test_every),
		TEST(test_delays),
		TEST(test_not_ready),
		TEST(test_unseen),
		TEST(test_hole),
		TEST(test_reclaim),
		TEST(test_threads),
		TEST(test_threads_few_chunks),
		TEST(test_threads_one_record),
		TEST(test_limit),
		TEST(test_handler_anywhere),
		TEST(test_handler_fills_chunks),
		TEST(test_handler_goes_round),
		TEST(test_values),
		TEST(test_values_full),
		TEST(test_values_hole),
		TEST(test_values_spoiled),
		TEST(test_values_types),
		TEST(test_values_threads),
		TEST(test_values_threads_few_chunks),
		TEST(test_values_handler_anywhere),
		TEST(test_values_handler_fills_chunks),
		TEST(test_values_handler_goes_round),
		TEST(test_stacks),
		TEST(test_stacks_lost),
		TEST(test_stacks_spoiled),
		TEST(test_stacks_never_used),
		TEST(test_stacks_end),
		TEST(test_stacks_delays),
		TEST(test_stacks_handler_anywhere),
		TEST(test_stacks_handler_fills_chunks),
		TEST(test_stacks_handler_goes_round),
		TEST(test_stacks_nonsense),
		TEST(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
