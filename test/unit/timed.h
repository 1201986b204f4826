/* SPDX-License-Identifier: MIT */
#ifndef TEST_TIMED_H
#define TEST_TIMED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "inject/arch/arch.h"
#include "inject/page.h"

/*
 * Two functions of this process, hooked at entry and exit with the stubs that targets get, so that
 * their calls are timed. Each is a target of its own: cell[i], and block i + 1 of spans. Function:
 * calls `inside` with its first argument, which it returns.
 */
enum { TIMED = 2, TIMED_TEXT = 32768, TIMED_COMMON = 128, TIMED_STUB = 512, TIMED_CELLS = 8192 };

typedef void *(*timed_fn)(void *ctx, void (*inside)(void *ctx));

struct timed_site {
	struct plan plan;
	uint64_t stub;
	struct arch_site site;
};

struct timed {
	uint8_t *text; /* the functions, 64 bytes each; common code; stubs */
	struct sb_page_header *hdr;
	size_t front; /* from a setting to its counts */
	struct sb_page_cell *cell[TIMED];
	struct sb_page_record record;
	struct sb_page_calls *calls;
	struct sb_page_span *spans; /* [block][slot] */
	size_t slots;
	struct sb_page_threads *tables;
	struct arch_env env;
	struct timed_site begin[TIMED], end[TIMED];
	bool values;	      /* the first two arguments and what is returned are recorded */
	uint8_t follow;	      /* as in struct arch_count */
	uint64_t stack;	      /* as in struct arch_env */
	uint32_t stacks;      /* places for stacks of recorded calls, a power of two; 0: none */
	uint32_t stack_bytes; /* ... of each */
	struct page page; /* timed_make_traced(): of it, the chunks, and the calls of process 1 */
};

static const uint8_t timed_code[] = {
	0x53,		  /* push %rbx */
	0x48, 0x89, 0xfb, /* mov %rdi, %rbx */
	0x48, 0x89, 0xff, /* mov %rdi, %rdi */
	0xff, 0xd6,	  /* call *%rsi */
	0x48, 0x89, 0xd8, /* mov %rbx, %rax */
	0x48, 0x89, 0xdb, /* mov %rbx, %rbx */
	0x5b,		  /* pop %rbx */
	0xc3,		  /* ret */
};

static inline timed_fn timed_function(const struct timed *t, int i)
{
	return (timed_fn)(uintptr_t)(t->text + 64 * i);
}

/* One that the threads of a fork share as well. */
static inline void *timed_memory(size_t size, int more)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE | more, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0);

	assert_true(p != MAP_FAILED);
	return p;
}

static inline void timed_page(struct timed *t)
{
	struct sb_page_header lay;

	page_layout(&lay, &(struct page_want){ .targets = TIMED, .spans = true, .little = true });
	t->front = TIMED_CELLS + TIMED * (size_t)lay.cell_size;
	t->hdr = timed_memory(2 * t->front, 0);
	*t->hdr = lay;
	t->hdr->lease_until = arch->clock_read() + (1ull << 60);
	t->slots = lay.slots + SB_PAGE_SHARED_SLOTS;
	for (int i = 0; i < TIMED; i++) {
		t->cell[i] = (void *)((char *)t->hdr + TIMED_CELLS + i * (size_t)lay.cell_size);
		t->cell[i]->state = SB_STATE_SLOW;
		t->cell[i]->flags = SB_CELL_SPANS;
		t->cell[i]->span_block = (uint16_t)(i + 1);
		t->cell[i]->span_bit = (uint8_t)i;
		t->cell[i]->span_epoch = 1;
		t->cell[i]->value[0] = SB_VALUE_SUM | 1;
		t->cell[i]->value[1] = 2;
		t->cell[i]->value[2] = SB_VALUE_SUM | SB_VALUE_RETURNED;
		t->cell[i]->shape = page_value_shape(t->cell[i]->value);
	}
	t->spans = timed_memory(4 * t->slots * sizeof(*t->spans), 0);
	t->calls = timed_memory(sizeof(*t->calls), 0);
	t->tables = timed_memory(sizeof(*t->tables) * 2, 0);
}

static inline void timed_site(struct timed *t, int i, int number, bool exit, struct timed_site *to)
{
	uint64_t base = (uint64_t)t->text + 64 * (uint64_t)i;
	uint64_t end = base + sizeof(timed_code);
	struct plan_request req = {
		.addr = exit ? end - 1 : base,
		.func = base,
		.func_end = end,
		.prev_end = base,
		.next = base + 64,
		.text = t->text,
		.text_addr = (uint64_t)t->text,
		.text_len = 64 * TIMED,
		.entry = !exit,
		.exit = exit,
	};
	struct arch_count count = { .cell = (uint64_t)t->cell[i],
				    .kind = exit ? ARCH_END : ARCH_BEGIN,
				    .values = t->values,
				    .follow = t->follow };
	enum plan_refusal why;

	to->stub = t->env.common + ((arch->common_size() + 63) & ~63ul) +
		   TIMED_STUB * (uint64_t)number;
	assert_int_equal(plan_make(&req, NULL, &to->plan, NULL, 0), PLAN_OK);
	assert_true(arch->emit_site(&t->env, &to->plan, &count, to->stub,
				    (uint8_t *)(uintptr_t)to->stub, TIMED_STUB, &to->site,
				    &why) > 0);
}

static inline void timed_patch(struct timed *t, const struct timed_site *s)
{
	plan_patch(&s->plan, s->stub + s->site.entry, t->text + (s->plan.addr - (uint64_t)t->text),
		   NULL);
}

/* Calls are recorded as well: a second page of which only that is used. */
static inline void timed_trace(struct timed *t, uint32_t chunks)
{
	struct sb_page_header *lay = &t->page.lay;

	lay->procs_max = 2;
	lay->chunks = chunks;
	lay->trace_off = 4096;
	lay->calls_off = (lay->trace_off + 4096 + chunks * sizeof(uint32_t) + 63) & ~63ull;
	lay->chunks_off = lay->calls_off + 2 * sizeof(struct sb_page_calls);
	t->page.size = lay->chunks_off + sizeof(struct sb_page_taken) +
		       chunks * sizeof(struct sb_page_chunk);
	if (t->stacks) {
		lay->stacks = t->stacks;
		lay->stack_size = (uint32_t)sizeof(struct sb_page_stack) + t->stack_bytes +
				  SB_PAGE_FRAMES;
		lay->stack_list_off = (t->page.size + 63) & ~63ull; /* aligned, as page_layout() */
		lay->stacks_off = (lay->stack_list_off + sizeof(struct sb_page_stacks) +
				   t->stacks * sizeof(uint32_t) + 63) &
				  ~63ull;
		t->page.size = lay->stacks_off + sizeof(struct sb_page_stacks_taken) +
			       (size_t)t->stacks * lay->stack_size;
	}
	t->page.hdr = timed_memory(t->page.size, 0);
	t->page.proc_used[1] = true;
	munmap(t->calls, sizeof(*t->calls));
	t->calls = (struct sb_page_calls *)((char *)t->page.hdr + lay->calls_off) + 1;
	t->record.calls_off = sizeof(*t->calls);
}

/* own: threads have slots of their own. chunks: in which calls are recorded, or 0. like: its
 * values, follow, stack and stacks are taken. */
static inline void timed_make_like(struct timed *t, const struct timed *like, bool own,
				   uint32_t chunks)
{
	struct timed set = *like;

	memset(t, 0, sizeof(*t));
	t->values = set.values;
	t->follow = set.follow;
	t->stack = set.stack;
	t->stacks = set.stacks;
	t->stack_bytes = set.stack_bytes;
	timed_page(t);
	if (chunks)
		timed_trace(t, chunks);
	t->text = timed_memory(TIMED_TEXT, PROT_EXEC);
	t->env = (struct arch_env){
		.header = (uint64_t)t->hdr,
		.record = (uint64_t)&t->record,
		.procs = (uint64_t)t->hdr + 4096,
		.tables = (uint64_t)t->tables,
		.counters = t->front,
		.most_ticks = 1ull << 34,
		.spans = (uint64_t)t->spans,
		.calls = (uint64_t)t->calls - t->record.calls_off,
		.trace = chunks ? (uint64_t)t->page.hdr + t->page.lay.trace_off : 0,
		.taken = chunks ? (uint64_t)t->page.hdr + t->page.lay.chunks_off : 0,
		.chunks = chunks,
		.stacks = t->stacks,
		.stack_size = t->page.lay.stack_size,
		.stack_list = (uint64_t)t->page.hdr + t->page.lay.stack_list_off,
		.stacks_taken = (uint64_t)t->page.hdr + t->page.lay.stacks_off,
		.span_size = t->slots * sizeof(*t->spans),
		.span_blocks = 4,
		.stack = t->stack,
		.common = (uint64_t)t->text + TIMED_COMMON,
		.slots = t->hdr->slots,
		.own_slots = own,
	};
	arch->emit_common(&t->env, t->text + TIMED_COMMON);
	for (int i = 0; i < TIMED; i++)
		memcpy(t->text + 64 * i, timed_code, sizeof(timed_code));
	for (int i = 0; i < TIMED; i++) {
		timed_site(t, i, 2 * i, false, &t->begin[i]);
		timed_site(t, i, 2 * i + 1, true, &t->end[i]);
	}
	for (int i = 0; i < TIMED; i++) {
		timed_patch(t, &t->begin[i]);
		timed_patch(t, &t->end[i]);
	}
}

static inline void timed_make_valued(struct timed *t, bool own, uint32_t chunks, bool values)
{
	timed_make_like(t, &(struct timed){ .values = values }, own, chunks);
}

static inline void timed_make_traced(struct timed *t, bool own, uint32_t chunks)
{
	timed_make_valued(t, own, chunks, false);
}

static inline void timed_make(struct timed *t, bool own)
{
	timed_make_traced(t, own, 0);
}

static inline void timed_free(struct timed *t)
{
	if (t->page.hdr)
		munmap(t->page.hdr, t->page.size);
	else
		munmap(t->calls, sizeof(*t->calls));
	munmap(t->text, TIMED_TEXT);
	munmap(t->hdr, 2 * t->front);
	munmap(t->spans, 4 * t->slots * sizeof(*t->spans));
	munmap(t->tables, sizeof(*t->tables) * 2);
}

static inline unsigned int timed_bucket(uint64_t ticks)
{
	unsigned int i = 0;

	while (i + 1 < SB_PAGE_SPAN_BUCKETS && page_span_bucket(i + 1) <= ticks)
		i++;
	return i;
}

/*
 * All that was recorded of a function's calls, and the number of slots that recorded some. A call
 * that begins is a hit.
 */
static inline struct sb_page_span timed_sum(const struct timed *t, int i, int *slots)
{
	const struct sb_page_counts *counts = (void *)((char *)t->cell[i] + t->front);
	struct sb_page_span sum = { 0 };

	*slots = 0;
	for (size_t s = 0; s < t->slots; s++) {
		const struct sb_page_span *from = &t->spans[(size_t)(i + 1) * t->slots + s];

		*slots += counts->slot[s].hits != 0 || from->calls != 0;
		sum.begun += counts->slot[s].hits;
		sum.calls += from->calls;
		sum.ticks += from->ticks;
		sum.own_ticks += from->own_ticks;
		sum.outer_ticks += from->outer_ticks;
		sum.apart += from->apart;
		for (int v = 0; v < SB_PAGE_VALUES; v++) {
			sum.sum[v] += from->sum[v];
			sum.summed[v] += from->summed[v];
		}
		if (from->inv_least > sum.inv_least)
			sum.inv_least = from->inv_least;
		if (from->most > sum.most)
			sum.most = from->most;
		for (int b = 0; b < SB_PAGE_SPAN_BUCKETS; b++)
			sum.bucket[b] += from->bucket[b];
		if (from->last)
			sum.bucket[timed_bucket(from->last - 1)]++;
	}
	return sum;
}

#endif
