/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * Out of a stub at every instruction of it: a child of this process is stepped through a hooked
 * function, and at each step leave_site() and leave_common() must give the registers that it had
 * at the entry.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "hooked.h"
#include "inject/ptrace.h"

enum { STEPS = 4000, FLAGS = 0x8d5 };

/* Nothing between the raise and the call may be what is compared: the step before is the base. */
static void child(const struct hooked *h, bool go)
{
	long (*fn)(long) = (long (*)(long))(uintptr_t)h->text;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	_exit((go ? hooked_call_go(h, 41) : fn(41)) == 42 ? 0 : 1);
}

static void read_spill(const struct arch_regs *regs, pid_t pid, struct arch_spill *spill)
{
	for (int i = 0; i < 16; i++)
		spill->word[i] = (uint64_t)ptrace(PTRACE_PEEKDATA, pid,
						  arch->sp(regs) - 8 * (uint64_t)(i + 1), 0);
}

static bool leave(const struct hooked *h, pid_t pid, struct arch_regs *regs)
{
	const uint8_t *common = h->text + COMMON_AT;
	struct arch_spill spill;
	struct arch_cut cut;
	bool half = false;

	read_spill(regs, pid, &spill);
	if (arch->pc(regs) < h->stub &&
	    arch->leave_common(common, arch->common_size(), arch->pc(regs) - (uint64_t)common,
			       &spill, regs, &cut) == ARCH_LEAVE_NOT)
		return false;
	return arch->leave_site((const uint8_t *)h->stub, h->site.displaced,
				arch->pc(regs) - h->stub, &spill, regs, &half);
}

static void same(const struct arch_regs *a, const struct arch_regs *b, bool flags, bool go)
{
	struct arch_regs x = *a, y = *b;

	x.gp.rip = y.gp.rip = 0;
	x.gp.eflags &= flags ? FLAGS : 0;
	y.gp.eflags &= flags ? FLAGS : 0;
	if (go) {
		x.gp.r12 = y.gp.r12;
		x.gp.r13 = y.gp.r13;
	}
	assert_memory_equal(&x, &y, sizeof(x));
}

/* Steps the child to its end; how many steps were in our code. */
static int walk(const struct hooked *h, const struct variant *v, pid_t pid)
{
	uint64_t lo = (uint64_t)h->text + COMMON_AT, hi = h->stub + h->site.displaced;
	struct arch_regs entry = { 0 }, regs;
	int status, steps = 0;

	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status)) {
			assert_int_equal(status, 0);
			return steps;
		}
		assert_int_equal(pt_get_regs(pid, &regs), 0);
		if (arch->pc(&regs) == h->plan.addr)
			entry = regs;
		if (arch->pc(&regs) < lo || arch->pc(&regs) >= hi)
			continue;
		assert_true(leave(h, pid, &regs));
		same(&entry, &regs, v->flags || v->mid || v->doorbell, v->go);
		steps++;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return steps;
}

static void walk_variant_on(const struct variant *v, int least, uint64_t stack_end)
{
	struct hooked *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	make_page(h, v);
	make_hook(h, v);
	h->stack_end = stack_end;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(h, v->go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(walk(h, v, pid) >= least);
	free_hook(h);
	munmap(h, sizeof(*h));
}

static void walk_variant(const struct variant *v, int least)
{
	walk_variant_on(v, least, 0);
}

static void each_shape(uint32_t state, uint32_t cell_flags, int least)
{
	for (int shape = 0; shape < 12; shape++) {
		struct variant v = {
			.own = shape % 6 < 3,
			.flags = shape % 3 > 0,
			.mid = shape % 3 == 2,
			.each = shape >= 6,
			.state = state,
			.cell_flags = cell_flags,
		};

		if (!v.own || arch->thread_pointer_readable())
			walk_variant(&v, least);
	}
}

static void test_off(void **state)
{
	(void)state;
	each_shape(SB_STATE_OFF, 0, 8);
}

static void test_counting(void **state)
{
	(void)state;
	each_shape(SB_STATE_COUNT, 0, 12);
}

static void test_delayed(void **state)
{
	(void)state;
	each_shape(SB_STATE_SLOW, SB_CELL_DELAY, 60);
}

static void test_doorbell(void **state)
{
	struct variant ring = { .doorbell = true }, once = { .doorbell = true, .once = true };
	struct variant quiet = { .doorbell = true, .once = true, .quiet = true };

	(void)state;
	walk_variant(&ring, 100);
	walk_variant(&once, 100);
	walk_variant(&quiet, 10);
}

static void each_go(uint32_t state, uint32_t cell_flags, int least, uint64_t stack_end)
{
	for (int shape = 0; shape < 4; shape++) {
		struct variant v = {
			.own = shape % 2,
			.each = shape >= 2,
			.go = true,
			.state = state,
			.cell_flags = cell_flags,
		};

		if (!v.own || arch->thread_pointer_readable())
			walk_variant_on(&v, least, stack_end);
	}
}

/* A Go function without a stack check, on a stack with room and on one without. */
static void test_go(void **state)
{
	(void)state;
	each_go(SB_STATE_OFF, 0, 11, 0);
	each_go(SB_STATE_COUNT, 0, 15, 0);
	each_go(SB_STATE_SLOW, SB_CELL_DELAY, 60, 0);
	each_go(SB_STATE_OFF, 0, 8, UINT64_MAX);
	each_go(SB_STATE_COUNT, 0, 10, UINT64_MAX);
	each_go(SB_STATE_SLOW, SB_CELL_DELAY, 10, UINT64_MAX);
}

static uint64_t hits(const struct hooked *h)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->hdr->slots + SB_PAGE_SHARED_SLOTS; i++)
		sum += h->counts->slot[i].hits;
	return sum;
}

/* Without room on the stack the call is counted, and nothing is written there. */
static void test_go_counts(void **state)
{
	struct variant v = { .go = true, .each = true, .state = SB_STATE_COUNT };

	(void)state;
	for (int own = 0; own < 1 + arch->thread_pointer_readable(); own++) {
		struct hooked h = { .stack_end = 0 };

		v.own = own;
		make_page(&h, &v);
		make_hook(&h, &v);
		for (int i = 1; i <= 6; i++) {
			h.stack_end = i % 2 ? UINT64_MAX : 0;
			assert_int_equal(hooked_call_go(&h, 41), 42);
			assert_int_equal(hits(&h), i);
			assert_int_equal(h.each, i);
		}
		free_hook(&h);
	}
}

/* Code that is not ours, or another version's, is not guessed at. */
static void test_other_code(void **state)
{
	struct arch_spill spill = { { 0 } };
	struct arch_regs regs = { 0 };
	struct arch_cut cut;
	uint8_t code[4096] = { 0 };
	bool half = false;

	(void)state;
	for (size_t len = 0; len < 300; len++)
		assert_false(arch->leave_site(code, len, len / 2, &spill, &regs, &half));
	for (size_t at = 0; at < arch->common_size(); at += 7)
		assert_int_equal(arch->leave_common(code, sizeof(code), at, &spill, &regs, &cut),
				 ARCH_LEAVE_NOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),	   cmocka_unit_test(test_counting),
		cmocka_unit_test(test_delayed),	   cmocka_unit_test(test_doorbell),
		cmocka_unit_test(test_other_code), cmocka_unit_test(test_go),
		cmocka_unit_test(test_go_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
