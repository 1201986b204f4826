/* SPDX-License-Identifier: MIT */
/* The unwinder: the callers of this very process, as the C library's own unwinder has them. */
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>
#include "elf/here.h"
#include "elf/module.h"
#include "elf/unwind.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { DEPTH = 8, FRAMES = 32 };

struct copy {
	struct unwind_regs regs;
	uint64_t sp;
	uint8_t bytes[16384];
	void *truth[FRAMES];
	int n_truth;
};

static struct copy taken;

/* Unknown to the compiler, which would merge the frames. */
static uint64_t (*volatile deeper)(unsigned int, uint64_t, uint64_t);

/* A frame's own size, and registers in use across the call. */
static __attribute__((noinline, no_sanitize_address)) uint64_t descend(unsigned int depth,
								       uint64_t a, uint64_t b)
{
	volatile uint8_t room[96];
	ucontext_t u;

	memset((void *)room, (int)depth, sizeof(room));
	if (depth)
		return deeper(depth - 1, a * 3 + room[depth % 96], b ^ a) + a - b + room[3];
	taken.n_truth = backtrace(taken.truth, FRAMES);
	getcontext(&u);
	taken.regs = (struct unwind_regs){ .known = 0x100c8 | 0xfu << 12 };
	taken.regs.reg[UNWIND_PC] = (uint64_t)u.uc_mcontext.gregs[REG_RIP];
	taken.regs.reg[UNWIND_RSP] = taken.sp = (uint64_t)u.uc_mcontext.gregs[REG_RSP];
	taken.regs.reg[UNWIND_RBP] = (uint64_t)u.uc_mcontext.gregs[REG_RBP];
	taken.regs.reg[UNWIND_RBX] = (uint64_t)u.uc_mcontext.gregs[REG_RBX];
	for (int i = 0; i < 4; i++)
		taken.regs.reg[UNWIND_R12 + i] = (uint64_t)u.uc_mcontext.gregs[REG_R12 + i];
	for (size_t i = 0; i < sizeof(taken.bytes); i++)
		taken.bytes[i] = ((const volatile uint8_t *)taken.sp)[i];
	return a;
}

static bool read_copy(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct copy *c = ctx;

	if (addr - c->sp > sizeof(c->bytes) - sizeof(*value))
		return false;
	memcpy(value, c->bytes + (addr - c->sp), sizeof(*value));
	return true;
}

static void callers_are_found(void **state)
{
	struct sb_err err = { 0 };
	struct maps maps = { 0 };
	struct module_space space = { getpid(), &maps, NULL };
	volatile uint8_t above[sizeof(taken.bytes)]; /* what is copied is of the stack */
	struct unwind_regs regs;

	(void)state;
	if (SANITIZED) /* its own backtrace() has other frames */
		skip();
	above[0] = 0;
	assert_int_equal(above[0], 0);
	deeper = descend;
	descend(DEPTH, 1, 2);
	assert_true(taken.n_truth > DEPTH);
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	regs = taken.regs;
	/* backtrace() begins at its own return address in the same function. */
	for (int i = 1; i <= DEPTH; i++) {
		struct module m;

		assert_true(module_at(&space, regs.reg[UNWIND_PC], &m, &err));
		assert_true(unwind_step(m.img, m.bias, &regs, read_copy, &taken));
		assert_ptr_equal((void *)regs.reg[UNWIND_PC], taken.truth[i]);
		image_put(m.img);
	}
	maps_free(&maps);
}

/* Of a stack that was cut off nothing is made up. */
static void a_cut_stack_ends(void **state)
{
	struct unwind_regs regs = taken.regs;
	struct sb_err err = { 0 };
	struct maps maps = { 0 };
	struct module_space space = { getpid(), &maps, NULL };
	struct module m;

	(void)state;
	if (SANITIZED) /* no stack was copied */
		skip();
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	assert_true(module_at(&space, regs.reg[UNWIND_PC], &m, &err));
	taken.sp += 1 << 20;
	assert_false(unwind_step(m.img, m.bias, &regs, read_copy, &taken));
	assert_ptr_equal(regs.reg[UNWIND_PC], taken.regs.reg[UNWIND_PC]);
	regs.reg[UNWIND_PC] = 1;
	assert_false(unwind_step(m.img, m.bias, &regs, read_copy, &taken));
	image_put(m.img);
	maps_free(&maps);
}

/* A function whose first instruction is interrupted: the place before it is of no function. */
__asm__(".text\n"
	".balign 16\n"
	"nop\n.balign 16\n"
	".globl trapping\n"
	".type trapping, @function\n"
	"trapping:\n"
	".cfi_startproc\n"
	"ud2\n"
	"ret\n"
	".cfi_endproc\n"
	".size trapping, . - trapping\n");
void trapping(void);

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	descend(0, 1, 2);
	u->uc_mcontext.gregs[REG_RIP] += 2;
}

static enum unwind_result step(const struct module_space *space, struct unwind_regs *regs)
{
	enum unwind_result result;
	struct sb_err err = { 0 };
	struct module m;

	assert_true(module_at(space, regs->reg[UNWIND_PC] - regs->called, &m, &err));
	result = unwind_caller(m.img, m.bias, regs, read_copy, &taken);
	image_put(m.img);
	return result;
}

/* From a handler, by way of the kernel's frame, into the interrupted function and up to the last.
 */
static void a_signal_is_passed(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	volatile uint8_t above[sizeof(taken.bytes)]; /* what is copied is of the stack */
	struct sb_err err = { 0 };
	struct maps maps = { 0 };
	struct module_space space = { getpid(), &maps, NULL };
	struct unwind_regs regs;
	enum unwind_result result;
	int i = 1, signals = 0;

	(void)state;
	if (SANITIZED) /* its own backtrace() has other frames */
		skip();
	above[0] = 0;
	assert_int_equal(above[0], 0);
	sigaction(SIGILL, &sa, NULL);
	trapping();
	signal(SIGILL, SIG_DFL);
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	for (regs = taken.regs; (result = step(&space, &regs)) <= UNWIND_SIGNAL; i++) {
		assert_ptr_equal((void *)regs.reg[UNWIND_PC], taken.truth[i]);
		assert_int_equal(regs.called, result == UNWIND_CALLER);
		if (result == UNWIND_SIGNAL)
			assert_ptr_equal((void *)regs.reg[UNWIND_PC], trapping);
		signals += result == UNWIND_SIGNAL;
	}
	assert_int_equal(signals, 1);
	assert_int_equal(i, 5); /* up to here, where what is above is not copied */
	maps_free(&maps);
}

static void assert_same(const struct unwind_expr *a, const struct unwind_expr *b)
{
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->byte, b->byte, a->size);
}

/* The process without rights that reads a table finds what this one does, at places all over the C
 * library, among them those of expressions (its PLT, the return from a signal's handler). */
static void the_reader_finds_the_same(void **state)
{
	struct sb_err err = { 0 };
	struct maps maps = { 0 };
	struct module_space space = { getpid(), &maps, NULL };
	struct image_segment seg[4];
	size_t found = 0, expressions = 0;
	struct module m;

	(void)state;
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	assert_true(module_at(&space, (uint64_t)(uintptr_t)backtrace, &m, &err));
	assert_true(image_text(m.img, seg, 4) > 0);
	for (uint64_t at = 0; at < seg[0].size; at += at < 4096 ? 7 : 997) {
		struct unwind_rules here, there;
		bool known = here_rules(m.img, seg[0].vaddr + at, &here);

		assert_int_equal(unwind_rules(m.img, seg[0].vaddr + at, &there), known);
		if (!known)
			continue;
		found++;
		expressions += here.cfa_expr.size > 0;
		assert_int_equal(here.signal, there.signal);
		assert_int_equal(here.cfa_offset, there.cfa_offset);
		assert_int_equal(here.cfa_reg, there.cfa_reg);
		assert_same(&here.cfa_expr, &there.cfa_expr);
		for (int i = 0; i < UNWIND_REGS; i++) {
			assert_int_equal(here.rule[i].kind, there.rule[i].kind);
			assert_int_equal(here.rule[i].offset, there.rule[i].offset);
			assert_same(&here.rule[i].expr, &there.rule[i].expr);
		}
	}
	assert_true(found > 100);
	assert_true(expressions > 10);
	image_put(m.img);
	maps_free(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_are_found),
		cmocka_unit_test(a_cut_stack_ends),
		cmocka_unit_test(a_signal_is_passed),
		cmocka_unit_test(the_reader_finds_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
