/* SPDX-License-Identifier: MIT */
#ifndef TEST_HOOKED_H
#define TEST_HOOKED_H

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
 * The sample function of this process, hooked with the stub that targets get: struct variant says
 * how. make_page(), then make_hook(), then free_hook(); a failure fails the test.
 */
enum { TEXT = 32768, COMMON_AT = 128, PROC_AT = 4096, CELL_AT = 8192, FRONT = 12288 };

struct hooked {
	uint8_t *text; /* [0] the function, [128] common code and stub */
	struct sb_page_header *hdr;
	struct sb_page_cell *cell;
	struct sb_page_notice *told; /* FRONT behind: header, process, cell */
	struct sb_page_ring *ring;
	struct sb_page_counts *counts;
	struct sb_page_record record;
	struct sb_page_threads *tables; /* the test's own, where it needs them */
	struct sb_page_proc *proc;
	uint64_t each;
	uint64_t stack_end; /* of the goroutine that hooked_call_go() calls it as */
	struct arch_env env;
	struct arch_site site;
	uint64_t stub;
	struct plan plan;
};

struct variant {
	bool own, flags, mid, doorbell, once, quiet, each, go;
	uint32_t state, cell_flags;
	uint64_t most; /* ticks; 0: some seconds */
};

static inline void make_page(struct hooked *h, const struct variant *v)
{
	struct sb_page_header lay;

	page_layout(&lay, &(struct page_want){ .targets = 1, .little = true });
	h->hdr = aligned_alloc(4096, FRONT + CELL_AT + lay.cell_size);
	memset(h->hdr, 0, FRONT + CELL_AT + lay.cell_size);
	*h->hdr = lay;
	h->hdr->lease_until = arch->clock_read() + (1ull << 60);
	h->hdr->doorbell_spin = 1;
	h->proc = (void *)((char *)h->hdr + PROC_AT);
	h->cell = (void *)((char *)h->hdr + CELL_AT);
	h->told = (void *)((char *)h->hdr + FRONT);
	h->ring = (void *)((char *)h->proc + FRONT);
	h->counts = (void *)((char *)h->cell + FRONT);
	h->proc->quiet = v->quiet;
	h->cell->state = v->state;
	h->cell->flags = v->cell_flags;
	h->cell->delay_ticks = 20000; /* a few dozen steps of the spin */
	h->cell->overrun_limit = 1 << 20;
	h->cell->residual_max = 1 << 10;
	h->cell->pause_above = 5000;
}

static inline void make_plan(struct hooked *h, const struct variant *v)
{
	uint64_t base = (uint64_t)h->text;
	struct plan_request req = {
		.addr = base,
		.func = base,
		.func_end = base + arch_sample_size,
		.prev_end = base,
		.next = base + 64,
		.text = h->text,
		.text_addr = base,
		.text_len = 64,
		.entry = true,
	};

	assert_int_equal(plan_make(&req, NULL, &h->plan, NULL, 0), PLAN_OK);
	h->plan.flags_live = v->flags;
	h->plan.entry = !v->mid;
	h->plan.go_leaf = v->go;
}

/* As Go's code calls: r14 is the goroutine, and r12 and r13 are no one's. */
static inline long hooked_call_go(const struct hooked *h, long arg)
{
	long result;

	/* over this function's own red zone */
	__asm__ volatile("mov %[g], %%r14\n\tlea -128(%%rsp), %%rsp\n\tcall *%[fn]\n\t"
			 "lea 128(%%rsp), %%rsp"
			 : "=a"(result), "+D"(arg)
			 : [g] "r"(&h->stack_end), [fn] "r"(h->text)
			 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "cc",
			   "memory");
	return result;
}

static inline void make_hook(struct hooked *h, const struct variant *v)
{
	struct arch_count count = { .cell = (uint64_t)h->cell,
				    .each = v->each ? (uint64_t)&h->each : 0 };
	enum plan_refusal why;
	uint64_t base;
	size_t size;

	h->text = mmap(NULL, TEXT, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(h->text != MAP_FAILED);
	base = (uint64_t)h->text;
	memcpy(h->text, arch_sample_function, arch_sample_size);
	h->env = (struct arch_env){
		.header = (uint64_t)h->hdr,
		.record = (uint64_t)&h->record,
		.procs = (uint64_t)h->proc,
		.tables = (uint64_t)h->tables,
		.counters = FRONT,
		.most_ticks = v->most ? v->most : 1ull << 34,
		.common = base + COMMON_AT,
		.slots = h->hdr->slots,
		.own_slots = v->own,
	};
	h->stub = base + COMMON_AT + ((arch->common_size() + 63) & ~63ul);
	make_plan(h, v);
	arch->emit_common(&h->env, h->text + COMMON_AT);
	if (v->doorbell)
		size = arch->emit_doorbell(&h->env, &h->plan, h->stub, v->once, (uint8_t *)h->stub,
					   512, &h->site, &why);
	else
		size = arch->emit_site(&h->env, &h->plan, &count, h->stub, (uint8_t *)h->stub, 512,
				       &h->site, &why);
	assert_true(size > 0);
	plan_patch(&h->plan, h->stub + h->site.entry, h->text + (h->plan.addr - base), NULL);
}

static inline void free_hook(struct hooked *h)
{
	munmap(h->text, TEXT);
	free(h->hdr);
}

#endif
