/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * Displaced instructions are run, not only read: each window is executed where it stands and as
 * plan_emit() moved it, from the same registers, flags and memory, and must leave the same ones.
 *
 * Code is entered and left by signals alone. `int3` in enter() lets the handler put the wanted
 * registers into the context; everything around the window is int3, so that wherever it goes the
 * handler sees the registers it arrived with. The windows of real libraries: test/prove/.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <cmocka.h>
#include "inject/plan.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { CODE_SIZE = 0x10000, CODE_AT = 0x8000, ARENA_SIZE = 0x8000, ARITH_FLAGS = 0xcd5 };

/* Bit 31 set and bits above it: both halves of a pushed return address matter. Above the shadow
 * memory of the sanitizers. */
#define CODE_BASE  0x2001c0000000ULL
#define ARENA_BASE (CODE_BASE + 0x100000)

static const int64_t distances[] = { 0x20000, 0x40000000, 0x7fd00000, -0x40000000, -0x7f000000 };
#define N_DISTANCES (sizeof(distances) / sizeof(distances[0]))

static uint8_t *code, *arena, *copies[N_DISTANCES];
static uint8_t arena_start[ARENA_SIZE], arena_original[ARENA_SIZE];

struct outcome {
	int sig;
	greg_t reg[NGREG];
};

static gregset_t wanted, before_run;
static struct outcome outcome;
static volatile bool inside; /* the code under test is running */

/* Vector registers the same at each start; of the context's extended state, the ymm halves. */
static void set_vectors(ucontext_t *uc)
{
	enum { SW_RESERVED = 464, MAGIC = 0x46505853, YMM_HIGH = 576, YMM_HIGH_SIZE = 256 };
	uint8_t *state = (uint8_t *)uc->uc_mcontext.fpregs;
	uint32_t magic;

	memset(uc->uc_mcontext.fpregs->_xmm, 0x5a, sizeof(uc->uc_mcontext.fpregs->_xmm));
	memcpy(&magic, state + SW_RESERVED, sizeof(magic));
	if (magic == MAGIC)
		memset(state + YMM_HIGH, 0xa5, YMM_HIGH_SIZE);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	if (!inside) { /* entering */
		inside = true;
		memcpy(before_run, reg, sizeof(before_run));
		for (int i = REG_R8; i <= REG_EFL; i++)
			reg[i] = wanted[i];
		set_vectors(context);
		return;
	}
	inside = false;
	outcome.sig = sig;
	memcpy(outcome.reg, reg, sizeof(outcome.reg));
	memcpy(reg, before_run, sizeof(before_run));
}

__attribute__((noinline)) static void enter(void)
{
	__asm__ volatile("int3" ::: "memory", "cc");
}

static struct outcome run_at(uint64_t pc, uint8_t *memory_after)
{
	memcpy(arena, arena_start, ARENA_SIZE);
	wanted[REG_RIP] = (greg_t)pc;
	inside = false;
	enter();
	memcpy(memory_after, arena, ARENA_SIZE);
	return outcome;
}

static uint64_t random64(void)
{
	static uint64_t x = 88172645463325252ULL; /* the same run each time */

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* Registers: pointers into the arena, small numbers, or anything. */
static greg_t random_register(void)
{
	switch (random64() % 4) {
	case 0:
		return (greg_t)(random64() % 4);
	case 1:
		return (greg_t)(0x400000000000 + (random64() >> 36)); /* unused */
	default:
		return (greg_t)(ARENA_BASE + 0x1000 + (random64() % 0x6000 & ~7ULL));
	}
}

static void random_state(void)
{
	for (int i = REG_R8; i <= REG_RCX; i++)
		wanted[i] = random_register();
	wanted[REG_RSP] = ARENA_BASE + 0x4000;
	wanted[REG_EFL] = 0x202 | (greg_t)(random64() & (ARITH_FLAGS & ~0x400));
	/* memory holds pointers that can be jumped to, and seen to be */
	for (size_t i = 0; i < ARENA_SIZE; i += 8) {
		uint64_t value = CODE_BASE + 0x100 + random64() % 0x7000;

		memcpy(arena_start + i, &value, 8);
	}
}

static void *map_at(uint64_t addr, size_t len, int prot)
{
	void *p = mmap((void *)addr, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		       -1, 0);

	assert_ptr_equal(p, (void *)addr);
	return p;
}

/* In each test: cmocka puts handlers of its own in place before it. */
static void take_signals(void)
{
	static const int signals[] = { SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct sigaction sa = { .sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
}

static int setup(void **state)
{
	static uint8_t memory[1 << 16];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	(void)state;
	code = map_at(CODE_BASE, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
	arena = map_at(ARENA_BASE, ARENA_SIZE, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < N_DISTANCES; i++)
		copies[i] = map_at(CODE_BASE + (uint64_t)distances[i], 4096,
				   PROT_READ | PROT_WRITE | PROT_EXEC);
	return sigaltstack(&stack, NULL);
}

/* A window of `len` bytes at offset `at` of the code region, int3 all around. */
static void place(const void *bytes, size_t len, size_t at)
{
	memset(code, 0xcc, CODE_SIZE);
	memcpy(code + at, bytes, len);
}

static enum plan_refusal plan_at(size_t at, size_t len, struct plan *plan)
{
	struct plan_request req = {
		.addr = CODE_BASE + at,
		.func = CODE_BASE + at,
		.func_end = CODE_BASE + at + len,
		.prev_end = CODE_BASE + at,
		.next = CODE_BASE + CODE_SIZE,
		.text = code,
		.text_addr = CODE_BASE,
		.text_len = CODE_SIZE,
		.entry = true,
	};

	return plan_make(&req, NULL, plan, NULL, 0);
}

/* Where a thread stopped in the copy would be in the original. */
static uint64_t original_pc(uint64_t pc, uint64_t at, const struct plan_pc *pcs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pc == at + pcs[i].emitted)
			return pcs[i].original;
	return pc;
}

static void assert_same(const struct outcome *a, const struct outcome *b, uint64_t at,
			const struct plan_pc *pcs, size_t n)
{
	assert_int_equal(a->sig, b->sig);
	for (int i = REG_R8; i <= REG_RSP; i++)
		assert_int_equal(a->reg[i], b->reg[i]);
	assert_int_equal(a->reg[REG_EFL] & ARITH_FLAGS, b->reg[REG_EFL] & ARITH_FLAGS);
	assert_int_equal(a->reg[REG_RIP], original_pc((uint64_t)b->reg[REG_RIP], at, pcs, n));
}

/*
 * A call through memory that cannot be read faults after its return address was pushed: the one
 * place where the copy shows. True if that happened.
 */
static bool call_faulted(const struct plan *plan, const struct outcome *a, const struct outcome *b)
{
	uint64_t pc = (uint64_t)a->reg[REG_RIP];
	const uint8_t *p = plan->orig + (pc - plan->addr);

	if (a->sig != SIGSEGV || pc < plan->addr || pc >= plan->resume)
		return false;
	p += *p >> 4 == 4; /* REX */
	return b->sig == SIGSEGV && p[0] == 0xff && (p[1] & 0x38) == 0x10;
}

/* Runs the planned window in both places from one random state. */
static void compare_once(const struct plan *plan, size_t d)
{
	uint64_t at = CODE_BASE + (uint64_t)distances[d];
	uint8_t after[ARENA_SIZE];
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	enum plan_refusal why;
	struct outcome here, there;
	size_t n, len;

	memset(copies[d], 0xcc, 4096);
	len = plan_emit(plan, at, copies[d], PLAN_MAX_DISPLACED, pcs, &n, &why);
	if (!len) {
		assert_int_equal(why, PLAN_OUT_OF_REACH);
		return;
	}
	here = run_at(plan->addr, arena_original);
	there = run_at(at, after);
	if (call_faulted(plan, &here, &there))
		return;
	assert_same(&here, &there, at, pcs, n);
	assert_memory_equal(arena_original, after, ARENA_SIZE);
}

static void compare(const struct plan *plan, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++) {
		random_state();
		for (size_t d = 0; d < N_DISTANCES; d++)
			compare_once(plan, d);
	}
}

struct shape {
	const char *what;
	uint8_t len;
	uint8_t bytes[20];
};

static const struct shape shapes[] = {
	{ "plain", 5, { 0x48, 0x83, 0xc0, 0x05, 0x90 } },
	{ "push; mov; sub", 8, { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10 } },
	{ "lea rip", 7, { 0x48, 0x8d, 0x05, 0x10, 0, 0, 0 } },
	{ "load rip", 7, { 0x48, 0x8b, 0x0d, 0xf0, 0x7f, 0x0f, 0x00 } },
	{ "cmp rip, imm32", 10, { 0x81, 0x3d, 0xf0, 0x7f, 0x0f, 0, 0x78, 0x56, 0x34, 0x12 } },
	{ "movb imm8 to rip", 7, { 0xc6, 0x05, 0xf0, 0x80, 0x0f, 0, 0x7f } },
	{ "add to rip", 7, { 0x48, 0x01, 0x05, 0xf0, 0x80, 0x0f, 0 } },
	{ "jmp rel8", 5, { 0x50, 0x58, 0x90, 0xeb, 0x40 } },
	{ "jmp rel32", 5, { 0xe9, 0x00, 0x10, 0, 0 } },
	{ "jmp rel32 back", 5, { 0xe9, 0x00, 0xf0, 0xff, 0xff } },
	{ "jmp rip", 6, { 0xff, 0x25, 0xf0, 0x7f, 0x0f, 0 } },
	{ "jmp reg", 5, { 0x48, 0x8b, 0x07, 0xff, 0xe0 } },
	{ "bnd jmp", 6, { 0xf2, 0xe9, 0x00, 0x10, 0, 0 } },
	{ "je rel8", 5, { 0x48, 0x85, 0xc0, 0x74, 0x20 } },
	{ "ja rel8 on entry flags", 5, { 0x77, 0x20, 0x48, 0xff, 0xc0 } },
	{ "jl rel32", 6, { 0x0f, 0x8c, 0x00, 0x02, 0, 0 } },
	{ "jg rel8 back", 5, { 0x38, 0xd0, 0x7f, 0xc0, 0x90 } },
	{ "loop", 5, { 0xe2, 0x20, 0x48, 0xff, 0xc0 } },
	{ "loope", 5, { 0xe1, 0x20, 0x48, 0xff, 0xc0 } },
	{ "loopne back", 5, { 0xe0, 0xd0, 0x48, 0xff, 0xc0 } },
	{ "loop on ecx", 6, { 0x67, 0xe2, 0x20, 0x48, 0xff, 0xc0 } },
	{ "jrcxz", 5, { 0xe3, 0x20, 0x48, 0xff, 0xc0 } },
	{ "jecxz", 6, { 0x67, 0xe3, 0x20, 0x48, 0xff, 0xc0 } },
	{ "and; jrcxz", 6, { 0x83, 0xe1, 0x01, 0xe3, 0x20, 0xc3 } },
	{ "call", 5, { 0xe8, 0x00, 0x10, 0, 0 } },
	{ "call back", 6, { 0x50, 0xe8, 0x00, 0xf0, 0xff, 0xff } },
	{ "call next", 5, { 0xe8, 0, 0, 0, 0 } },
	{ "data16 call", 8, { 0x66, 0x66, 0x48, 0xe8, 0x00, 0x10, 0, 0 } },
	{ "call reg", 6, { 0x48, 0x8b, 0x07, 0x90, 0xff, 0xd0 } },
	{ "call r13", 7, { 0x4d, 0x8b, 0x6d, 0x00, 0x41, 0xff, 0xd5 } },
	{ "call mem", 6, { 0xff, 0x93, 0x10, 0, 0, 0 } },
	{ "call mem, sib", 7, { 0x90, 0x90, 0x90, 0xff, 0x54, 0xc3, 0x10 } },
	{ "call r12 mem", 5, { 0x41, 0xff, 0x54, 0x24, 0x08 } },
	{ "call rip", 6, { 0xff, 0x15, 0xf0, 0x7f, 0x0f, 0 } },
	{ "ret", 5, { 0x48, 0x89, 0xf8, 0x90, 0xc3 } },
	{ "ret imm16", 5, { 0x31, 0xc0, 0xc2, 0x10, 0x00 } },
	{ "ud2", 5, { 0x48, 0xff, 0xc0, 0x0f, 0x0b } },
	{ "dec; jne to byte 0", 5, { 0xd1, 0xe8, 0x75, 0xfc, 0x90 } },
	{ "jne to the third instruction", 5, { 0x75, 0x01, 0x90, 0x90, 0x90 } },
	{ "forward over one", 5, { 0x74, 0x02, 0xff, 0xc0, 0x90 } },
	{ "loop on itself", 5, { 0x6a, 0x05, 0x59, 0xe2, 0xfe } },
	{ "div fault", 5, { 0x31, 0xd2, 0x48, 0xf7, 0xf1 } },
	{ "setcc, cmov", 7, { 0x0f, 0x92, 0xc0, 0x48, 0x0f, 0x45, 0xd0 } },
	{ "adc", 6, { 0x48, 0x11, 0xd8, 0x48, 0x19, 0xca } },
	{ "pushf", 5, { 0x9c, 0x58, 0x48, 0x89, 0xc1 } },
	{ "vex rip", 8, { 0xc5, 0xf9, 0x6f, 0x05, 0xf0, 0x7f, 0x0f, 0 } },
	{ "palignr rip, imm8", 10, { 0x66, 0x0f, 0x3a, 0x0f, 0x05, 0xe0, 0x7f, 0x0f, 0, 4 } },
};

static void windows_behave_alike_elsewhere(void **state)
{
	(void)state;
	take_signals();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct plan plan;
		enum plan_refusal why;

		place(shapes[i].bytes, shapes[i].len, CODE_AT);
		why = plan_at(CODE_AT, shapes[i].len, &plan);
		if (why != PLAN_OK)
			fail_msg("%s: %s", shapes[i].what, plan_refusal_text(why));
		compare(&plan, 50);
	}
}

static void call_pushes_the_original_return_address(void **state)
{
	static const uint8_t call[] = { 0x55, 0xe8, 0x00, 0x10, 0, 0 };
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	enum plan_refusal why;
	struct outcome got;
	struct plan plan;
	uint64_t ret;
	size_t n;

	(void)state;
	take_signals();
	place(call, sizeof(call), CODE_AT);
	assert_int_equal(plan_at(CODE_AT, sizeof(call), &plan), PLAN_OK);
	assert_true(plan_emit(&plan, (uint64_t)copies[1], copies[1], PLAN_MAX_DISPLACED, pcs, &n,
			      &why));
	random_state();
	got = run_at((uint64_t)copies[1], arena_original);
	/* The push before it stays where it is. */
	assert_int_equal(plan.skipped, 1);
	assert_int_equal(got.reg[REG_RSP], wanted[REG_RSP] - 8);
	memcpy(&ret, arena_original + (got.reg[REG_RSP] - ARENA_BASE), 8);
	assert_int_equal(ret, CODE_BASE + CODE_AT + sizeof(call));
	assert_int_equal(got.reg[REG_RIP], CODE_BASE + CODE_AT + sizeof(call) + 0x1000 + 1);
}

static void golden_bytes(void **state)
{
	static const uint8_t code_bytes[] = { 0x55, 0xe3, 0x10, 0x31, 0xc0 };
	static const uint8_t want[] = {
		0x55,			      /* push %rbp */
		0xe3, 0x02, 0xeb, 0x05,	      /* jrcxz 1f; jmp 2f */
		0xe9, 0x09, 0x80, 0xfe, 0xff, /* 1: jmp CODE_AT + 0x13 */
		0x31, 0xc0,		      /* 2: xor %eax, %eax */
		0xe9, 0xf4, 0x7f, 0xfe, 0xff, /* jmp CODE_AT + 5 */
	};
	static const uint16_t boundaries[] = { 0, 1, 10, 12 };
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	uint8_t buf[PLAN_MAX_DISPLACED];
	enum plan_refusal why;
	struct plan plan;
	size_t n;

	(void)state;
	place(code_bytes, sizeof(code_bytes), CODE_AT);
	assert_int_equal(plan_at(CODE_AT, sizeof(code_bytes), &plan), PLAN_OK);
	assert_int_equal(plan_emit(&plan, CODE_BASE + 0x20000, buf, sizeof(buf), pcs, &n, &why),
			 sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pcs[i].emitted, boundaries[i]);
	assert_int_equal(plan_emitted_pc(pcs, n, CODE_BASE + CODE_AT + 3), 10);
	assert_int_equal(plan_emitted_pc(pcs, n, CODE_BASE + CODE_AT + 2), -1);
	assert_int_equal(pcs[3].original, plan.resume);
}

static void out_of_reach_is_said(void **state)
{
	static const uint8_t lea[] = { 0x48, 0x8d, 0x05, 0x10, 0, 0, 0 };
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	uint8_t buf[PLAN_MAX_DISPLACED];
	enum plan_refusal why;
	struct plan plan;
	size_t n;

	(void)state;
	place(lea, sizeof(lea), CODE_AT);
	assert_int_equal(plan_at(CODE_AT, sizeof(lea), &plan), PLAN_OK);
	assert_int_equal(plan_emit(&plan, CODE_BASE + 0x90000000, buf, sizeof(buf), pcs, &n, &why),
			 0);
	assert_int_equal(why, PLAN_OUT_OF_REACH);
	assert_int_equal(plan_emit(&plan, CODE_BASE, buf, 4, pcs, &n, &why), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(out_of_reach_is_said),
		cmocka_unit_test(windows_behave_alike_elsewhere),
		cmocka_unit_test(call_pushes_the_original_return_address),
	};

	return cmocka_run_group_tests_name("relocate", tests, setup, NULL);
}
