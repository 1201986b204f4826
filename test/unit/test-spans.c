/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
/*
 * How long calls take, with the real stubs: what is recorded of calls that return, of calls that
 * leave in another way, and of those that are interrupted at any instruction of the stubs.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include "timed.h"
#include "inject/page-trace.h"

enum { CALLS = 50, MOST_STEPS = 1500 };

static struct timed timed;

static void nothing(void *ctx)
{
	(void)ctx;
}

static void spend(uint64_t ticks)
{
	uint64_t from = arch->clock_read();

	while (arch->clock_read() - from < ticks)
		;
}

static void spends(void *ctx)
{
	spend((uint64_t)(uintptr_t)ctx);
}

static void call(int i, void (*inside)(void *), void *ctx)
{
	assert_ptr_equal(timed_function(&timed, i)(ctx, inside), ctx);
}

static struct sb_page_span sum_of(int i)
{
	int slots;

	return timed_sum(&timed, i, &slots);
}

static uint64_t in_buckets(const struct sb_page_span *s)
{
	uint64_t sum = 0;

	for (int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++)
		sum += s->bucket[i];
	return sum;
}

static int setup(void **state)
{
	(void)state;
	timed_make(&timed, arch->thread_pointer_readable());
	return 0;
}

static int setup_shared(void **state)
{
	(void)state;
	timed_make(&timed, false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	timed_free(&timed);
	return 0;
}

/* Each call is in the bucket whose limits hold it, and in the sums. */
static void test_counts(void **state)
{
	struct sb_page_span was = { 0 }, is;

	(void)state;
	for (uint64_t i = 1; i <= CALLS; i++) {
		uint64_t asked = i * i * 40, took;

		call(0, spends, (void *)(uintptr_t)asked);
		is = sum_of(0);
		took = is.ticks - was.ticks;
		assert_true(took >= asked);
		assert_int_equal(is.begun, i);
		assert_int_equal(is.calls, i);
		assert_int_equal(is.bucket[timed_bucket(took)], was.bucket[timed_bucket(took)] + 1);
		assert_int_equal(in_buckets(&is), i);
		assert_true(is.most >= took && ~is.inv_least <= took);
		assert_true(is.most == took || is.most == was.most);
		was = is;
	}
	assert_int_equal(is.outer_ticks, is.ticks);
	assert_int_equal(sum_of(1).begun, 0);
}

static struct sb_page_call *entry_in_use(void)
{
	struct sb_page_call *found = NULL;

	for (int i = 0; i < SB_PAGE_CALL_SETS; i++)
		for (int way = 0; way < 2; way++)
			if (timed.calls->set[i][way].at) {
				assert_null(found);
				found = &timed.calls->set[i][way];
			}
	assert_non_null(found);
	return found;
}

static uint64_t fields_of(const struct sb_page_cell *cell)
{
	return cell->span_block | (uint64_t)cell->span_bit << 16 | (uint64_t)cell->shape << 24 |
	       (uint64_t)cell->span_epoch << 32;
}

static uint64_t check_of(const struct sb_page_call *c, uint64_t at, const struct sb_page_cell *cell)
{
	return ((((c->start ^ at) * 0x9e3779b97f4a7c15ull) ^ fields_of(cell)) ^ c->within) +
	       c->parent;
}

static void began_earlier(void *ctx)
{
	struct sb_page_call *c = entry_in_use();

	assert_int_equal(c->check, check_of(c, c->at, timed.cell[0]));
	c->start -= *(uint64_t *)ctx;
	c->check = check_of(c, c->at, timed.cell[0]);
}

/* ... also of calls of hours: it looks as if they had begun then. */
static void test_buckets_of_all_orders(void **state)
{
	(void)state;
	for (unsigned int e = 0; e < 63; e++)
		for (uint64_t part = 0; part < 4; part++) {
			struct sb_page_span was = sum_of(0), is;
			uint64_t ago = (1ull << e) + ((1ull << e) / 4) * part, took;

			call(0, began_earlier, &ago);
			is = sum_of(0);
			took = is.ticks - was.ticks;
			assert_true(took >= ago);
			assert_int_equal(is.calls, was.calls + 1);
			assert_int_equal(is.bucket[timed_bucket(took)],
					 was.bucket[timed_bucket(took)] + 1);
		}
}

static void calls_other(void *ctx)
{
	spend(2000);
	for (int i = 0; i < 3; i++)
		call(1, spends, ctx);
	spend(1000);
}

/* A call's own time is its time without that of the timed calls that it makes. */
static void test_nested(void **state)
{
	struct sb_page_span outer, inner;

	(void)state;
	for (int i = 0; i < CALLS; i++)
		call(0, calls_other, (void *)3000);
	outer = sum_of(0);
	inner = sum_of(1);
	assert_int_equal(outer.calls, CALLS);
	assert_int_equal(inner.calls, 3 * CALLS);
	assert_int_equal(inner.begun, 3 * CALLS);
	if (!timed.env.own_slots)
		return;
	assert_int_equal(inner.apart + outer.apart, 0);
	assert_int_equal(inner.own_ticks, inner.ticks);
	assert_int_equal(outer.own_ticks, outer.ticks - inner.ticks);
	assert_true(outer.own_ticks >= CALLS * 3000);
	assert_int_equal(inner.outer_ticks, inner.ticks);
	assert_int_equal(outer.outer_ticks, outer.ticks);
}

static void recurses(void *ctx)
{
	intptr_t below = (intptr_t)ctx;

	spend(500);
	if (below)
		call(0, recurses, (void *)(below - 1));
}

/* Of a recursion the outermost call alone is in outer_ticks, and all own times make up its time. */
static void test_recursion(void **state)
{
	struct sb_page_span s;

	(void)state;
	for (int i = 0; i < CALLS; i++)
		call(0, recurses, (void *)9);
	s = sum_of(0);
	assert_int_equal(s.calls, CALLS * 10);
	assert_true(s.ticks > 3 * s.outer_ticks);
	assert_int_equal(s.own_ticks, s.outer_ticks);
}

static jmp_buf out;

static void jumps_out(void *ctx)
{
	(void)ctx;
	longjmp(out, 1);
}

/* All calls by it have one address. True: it returned. */
static __attribute__((noinline)) bool returns(int i, void (*inside)(void *), void *ctx)
{
	if (setjmp(out))
		return false;
	call(i, inside, ctx);
	return true;
}

/* What left in another way is missing; the next call at its address is a call of its own. */
static void test_abandoned(void **state)
{
	struct sb_page_span s;

	(void)state;
	for (int i = 0; i < CALLS; i++) {
		assert_false(returns(0, jumps_out, NULL));
		spend(100000);
		assert_true(returns(0, spends, (void *)100));
	}
	s = sum_of(0);
	assert_int_equal(s.begun, 2 * CALLS);
	assert_int_equal(s.calls, CALLS);
	assert_true(s.ticks >= CALLS * 100);
	assert_true(~s.inv_least < 100000);
}

/* The state is off when it begins: what is at its address is of another call. */
static void set_on(void *ctx)
{
	struct sb_page_cell *cell = timed.cell[(intptr_t)ctx];

	cell->span_epoch++;
	cell->state = SB_STATE_SLOW;
}

static void test_on_in_mid_call(void **state)
{
	(void)state;
	for (int i = 0; i < CALLS; i++) {
		assert_false(returns(0, jumps_out, NULL));
		timed.cell[0]->state = SB_STATE_OFF;
		assert_true(returns(0, set_on, (void *)0));
	}
	assert_int_equal(sum_of(0).begun, CALLS);
	assert_int_equal(sum_of(0).calls, 0);
}

/* ... also where that one was of another function. */
static void test_on_in_mid_call_of_another(void **state)
{
	(void)state;
	for (int i = 0; i < CALLS; i++) {
		assert_false(returns(0, jumps_out, NULL));
		timed.cell[1]->state = SB_STATE_OFF;
		assert_true(returns(1, set_on, (void *)1));
	}
	assert_int_equal(sum_of(0).begun, CALLS);
	assert_int_equal(sum_of(0).calls, 0);
	assert_int_equal(sum_of(1).begun, 0);
	assert_int_equal(sum_of(1).calls, 0);
}

static void changes_epoch(void *ctx)
{
	(void)ctx;
	timed.cell[0]->span_epoch++;
}

static void test_epoch(void **state)
{
	(void)state;
	for (int i = 0; i < CALLS; i++)
		call(0, changes_epoch, NULL);
	assert_int_equal(sum_of(0).begun, CALLS);
	assert_int_equal(sum_of(0).calls, 0);
	call(0, nothing, NULL);
	assert_int_equal(sum_of(0).calls, 1);
}

/* A thread that the filter leaves out: nothing of it is recorded, also if it comes in meanwhile. */
static void lets_in(void *ctx)
{
	(void)ctx;
	timed.cell[0]->flags = SB_CELL_SPANS;
}

static void test_filtered(void **state)
{
	(void)state;
	if (!timed.env.own_slots)
		skip();
	for (int i = 0; i < CALLS; i++) {
		timed.cell[0]->flags = SB_CELL_SPANS;
		assert_false(returns(0, jumps_out, NULL));
		timed.cell[0]->flags = SB_CELL_SPANS | SB_CELL_THREADS;
		assert_true(returns(0, lets_in, NULL));
	}
	assert_int_equal(sum_of(0).begun, CALLS);
	assert_int_equal(sum_of(0).calls, 0);
}

/* Of calls in slots that threads share it is not known in which calls they were made. */
static void test_shared_slots(void **state)
{
	struct sb_page_span s;

	(void)state;
	for (int i = 0; i < CALLS; i++)
		call(0, calls_other, (void *)300);
	for (int i = 0; i < TIMED; i++) {
		s = sum_of(i);
		assert_int_equal(s.begun, i ? 3 * CALLS : CALLS);
		assert_int_equal(s.calls, s.begun);
		assert_int_equal(s.apart, s.calls);
		assert_int_equal(s.own_ticks, 0);
		assert_int_equal(in_buckets(&s), s.calls);
	}
}

/* Where there is no block, a call is an ordinary one. */
static void test_no_block(void **state)
{
	(void)state;
	for (int block = 0; block <= 4; block += 4) {
		timed.cell[0]->span_block = (uint16_t)block;
		for (int i = 0; i < CALLS; i++)
			call(0, nothing, NULL);
	}
	assert_int_equal(sum_of(0).calls, 0);
	for (size_t i = 0; i < 4 * timed.slots; i++)
		assert_int_equal(timed.spans[i].begun | timed.spans[i].calls, 0);
}

/*
 * Another thread took the entry while it was between two stores to it, and goes on behind: the
 * start and the check are its own then, and the address is this call's.
 */
static void tears(void *ctx)
{
	struct sb_page_call *c = entry_in_use();
	uint64_t at = c->at;

	(void)ctx;
	c->start += 77;
	c->check = check_of(c, at + 0x801000, timed.cell[0]);
}

static void tears_within(void *ctx)
{
	(void)ctx;
	entry_in_use()->within ^= 1ull << 63;
}

static void test_torn_entry(void **state)
{
	(void)state;
	for (int i = 0; i < CALLS; i++) {
		call(0, tears, NULL);
		call(0, tears_within, NULL);
	}
	assert_int_equal(sum_of(0).begun, 2 * CALLS);
	assert_int_equal(sum_of(0).calls, 0);
}

/* Two others fill the set: the older one gives way, and its caller's own time is not known then. */
static void fills(void *ctx)
{
	struct sb_page_call *c = entry_in_use();

	(void)ctx;
	c->at += 0x100000;
}

static void test_gave_way(void **state)
{
	(void)state;
	call(0, fills, NULL);
	assert_int_equal(sum_of(0).calls, 0);
	assert_int_equal(timed.calls->thread[0].lost, 0);
	timed.calls->thread[0].gave_way = 1;
	call(0, nothing, NULL);
	assert_int_equal(timed.calls->thread[0].lost, 0);
	memset(timed.calls->set, 0, sizeof(timed.calls->set));
	call(0, fills, NULL);
	assert_int_equal(timed.calls->thread[0].lost, 1);
}

/* A recursion beyond the table: what returned is a call that was made, and all others are missing.
 */
static void deeper(void *ctx)
{
	intptr_t below = (intptr_t)ctx;

	if (below)
		call(0, deeper, (void *)(below - 1));
}

static void *deep(void *ctx)
{
	call(0, deeper, ctx);
	return NULL;
}

static void test_deep(void **state)
{
	struct sb_page_span s;
	pthread_attr_t attr;
	pthread_t thread;

	(void)state;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 20);
	assert_int_equal(pthread_create(&thread, &attr, deep, (void *)19999), 0);
	pthread_join(thread, NULL);
	s = sum_of(0);
	assert_int_equal(s.begun, 20000);
	assert_true(s.calls < 8193 && s.calls > 4000);
	assert_int_equal(in_buckets(&s), s.calls);
	assert_int_equal(timed.calls->thread[0].lost, 1);
}

/* An exit behind one that has returned, and whose entry was not seen, is none. */
static void set_slow(void *ctx)
{
	(void)ctx;
	timed.cell[0]->state = SB_STATE_SLOW;
}

static void test_two_exits(void **state)
{
	(void)state;
	for (int i = 0; i < CALLS; i++) {
		assert_true(returns(0, nothing, NULL));
		timed.cell[0]->state = SB_STATE_OFF;
		assert_true(returns(0, set_slow, NULL));
	}
	assert_int_equal(sum_of(0).begun, CALLS);
	assert_int_equal(sum_of(0).calls, CALLS);
}

/* ---- interrupted at each instruction ---- */

static struct {
	int at, steps;		     /* of the one step that counts; all so far */
	void (*does)(ucontext_t *u); /* there */
	bool always;		     /* at each step */
} trap;

static bool in_stubs(uint64_t pc)
{
	return pc >= timed.env.common && pc < timed.end[1].stub + TIMED_STUB;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig;
	(void)info;
	if (!in_stubs((uint64_t)u->uc_mcontext.gregs[REG_RIP]))
		return;
	trap.steps++;
	if (!trap.always && trap.steps != trap.at)
		return;
	if (!trap.always)
		u->uc_mcontext.gregs[REG_EFL] &= ~0x100; /* no further steps */
	trap.does(u);
}

static void spends_some(void *ctx)
{
	(void)ctx;
	spend(100);
}

/* fn(ctx, spends_some), a trap at each of its instructions. */
static __attribute__((noinline)) void stepped(timed_fn fn)
{
	void *ctx = (void *)5, *result;
	void (*inside)(void *) = spends_some;

	__asm__ volatile("mov $0x1234567, %%rcx\n\tmov $0x2345678, %%rdx\n\t"
			 "mov $0x3456789, %%r10\n\tmov $0x456789a, %%r11\n\t"
			 "mov $-5, %%r8\n\tmov $-6, %%r9\n\t"
			 "lea -128(%%rsp), %%rsp\n\tpushf\n\torq $0x100, (%%rsp)\n\tpopf\n\t"
			 "call *%[fn]\n\t"
			 "pushf\n\tandq $~0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp"
			 : "=a"(result), "+D"(ctx), "+S"(inside)
			 : [fn] "b"(fn)
			 : "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory");
	assert_ptr_equal(result, (void *)5);
}

static int setup_traps(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &sa, NULL);
	memset(&trap, 0, sizeof(trap));
	return setup(state);
}

static int teardown_traps(void **state)
{
	signal(SIGTRAP, SIG_DFL);
	return teardown(state);
}

/* Each call is recorded, too. */
static int setup_traced(void **state)
{
	int ret = setup_traps(state);

	teardown(state);
	timed_make_traced(&timed, true, 64);
	page_trace_free(page_trace_open(&timed.page, 0, 0));
	return ret;
}

static void calls_in_handler(ucontext_t *u)
{
	(void)u;
	call(1, nothing, NULL);
}

/* A handler at every instruction of both stubs makes a timed call: both are recorded, once each. */
static void test_handler_anywhere(void **state)
{
	struct sb_page_span s;

	(void)state;
	trap.does = calls_in_handler;
	trap.always = true;
	for (int i = 0; i < CALLS; i++)
		stepped(timed_function(&timed, 0));
	s = sum_of(1);
	assert_true(trap.steps > CALLS * 150);
	assert_int_equal(s.begun, trap.steps);
	assert_int_equal(s.calls, trap.steps);
	s = sum_of(0);
	assert_int_equal(s.begun, CALLS);
	assert_int_equal(s.calls, CALLS);
	assert_true(s.own_ticks <= s.ticks);
}

/* Calls of a handler, of another thread, with a time and a cost of their own, are in all places. */
static void takes_all(ucontext_t *u)
{
	(void)u;
	for (int i = 0; i < SB_PAGE_CALL_SETS; i++)
		for (int way = 0; way < 2; way++) {
			struct sb_page_call *c = &timed.calls->set[i][way];

			*c = (struct sb_page_call){
				.at = 0x7f0000001000 + 16 * (uint64_t)(2 * i + way),
				.start = 1,
				.parent = 0x7f0000002000,
				.within = 1,
				.children = 1ull << 50,
				.cost = 1ull << 50,
			};
			c->check = check_of(c, c->at, timed.cell[0]);
		}
}

static void frees_all(ucontext_t *u)
{
	(void)u;
	memset(timed.calls, 0, sizeof(*timed.calls));
}

/* ... at each single instruction: a call is missing, or its figures are right. */
static void taken(void (*does)(ucontext_t *))
{
	for (trap.at = 1; trap.at <= MOST_STEPS; trap.at++) {
		struct sb_page_span was = sum_of(0), is;
		uint64_t from = arch->clock_read(), most;

		trap.steps = 0;
		trap.does = does;
		stepped(timed_function(&timed, 0));
		most = arch->clock_read() - from;
		is = sum_of(0);
		frees_all(NULL);
		assert_int_equal(is.begun, was.begun + 1);
		assert_true(is.calls - was.calls <= 1);
		assert_true(is.ticks - was.ticks <= most);
		assert_true(is.own_ticks - was.own_ticks <= is.ticks - was.ticks);
		if (is.calls != was.calls)
			assert_true(is.ticks - was.ticks >= 100); /* it spends them */
		if (trap.steps < trap.at)
			break;
		if (is.calls != was.calls)
			assert_int_equal(is.own_ticks - was.own_ticks, is.ticks - was.ticks);
	}
	assert_in_range(trap.at, 150, MOST_STEPS);
}

static void test_taken_anywhere(void **state)
{
	(void)state;
	taken(takes_all);
}

static void test_freed_anywhere(void **state)
{
	(void)state;
	taken(frees_all);
}

/* ---- registers ---- */

enum { FLAGS = 0x8d5 };

static struct {
	const struct timed_site *in; /* the site whose stub runs */
	struct arch_regs at_entry;
	int stubs, steps;
} walked;

static void regs_of(const ucontext_t *u, struct arch_regs *regs)
{
	const greg_t *g = u->uc_mcontext.gregs;

	memset(regs, 0, sizeof(*regs));
	regs->gp = (struct user_regs_struct){
		.rax = (uint64_t)g[REG_RAX],
		.rbx = (uint64_t)g[REG_RBX],
		.rcx = (uint64_t)g[REG_RCX],
		.rdx = (uint64_t)g[REG_RDX],
		.rsi = (uint64_t)g[REG_RSI],
		.rdi = (uint64_t)g[REG_RDI],
		.rbp = (uint64_t)g[REG_RBP],
		.rsp = (uint64_t)g[REG_RSP],
		.r8 = (uint64_t)g[REG_R8],
		.r9 = (uint64_t)g[REG_R9],
		.r10 = (uint64_t)g[REG_R10],
		.r11 = (uint64_t)g[REG_R11],
		.r12 = (uint64_t)g[REG_R12],
		.r13 = (uint64_t)g[REG_R13],
		.r14 = (uint64_t)g[REG_R14],
		.r15 = (uint64_t)g[REG_R15],
		.rip = (uint64_t)g[REG_RIP],
		.eflags = (uint64_t)g[REG_EFL],
	};
}

static void same_registers(const struct arch_regs *now, bool flags)
{
	struct arch_regs a = walked.at_entry, b = *now;

	a.gp.rip = b.gp.rip = 0;
	a.gp.eflags &= flags ? FLAGS : 0;
	b.gp.eflags &= flags ? FLAGS : 0;
	assert_memory_equal(&a, &b, sizeof(a));
}

static const struct timed_site *site_at(uint64_t pc)
{
	const struct timed_site *const all[] = { &timed.begin[0], &timed.end[0] };

	for (int i = 0; i < 2; i++)
		if (pc >= all[i]->stub && pc <= all[i]->stub + all[i]->site.displaced)
			return all[i];
	return NULL;
}

/* Out of the stub here, without running it. */
static void leave(struct arch_regs *regs)
{
	const uint8_t *common = (const uint8_t *)(uintptr_t)timed.env.common;
	const struct timed_site *s = walked.in;
	uint64_t pc = arch->pc(regs);
	struct arch_spill spill;
	struct arch_cut cut;
	bool half = false;

	for (int i = 0; i < 16; i++)
		spill.word[i] = ((uint64_t *)arch->sp(regs))[-(i + 1)];
	if (!site_at(pc))
		assert_int_not_equal(arch->leave_common(common, arch->common_size(),
							pc - timed.env.common, &spill, regs, &cut),
				     ARCH_LEAVE_NOT);
	assert_true(arch->leave_site((const uint8_t *)(uintptr_t)s->stub, s->site.displaced,
				     arch->pc(regs) - s->stub, &spill, regs, &half));
}

static void looks(ucontext_t *u)
{
	struct arch_regs regs;
	const struct timed_site *s;
	bool end = walked.in == &timed.end[0];

	regs_of(u, &regs);
	s = site_at(arch->pc(&regs));
	if (!walked.in && s && arch->pc(&regs) < s->stub + s->site.displaced) {
		walked.in = s;
		walked.at_entry = regs;
		walked.stubs++;
	} else if (walked.in && s && arch->pc(&regs) == s->stub + s->site.displaced) {
		assert_ptr_equal(s, walked.in);
		same_registers(&regs, end);
		walked.in = NULL;
	} else if (walked.in) {
		leave(&regs);
		same_registers(&regs, end);
		walked.steps++;
	}
}

/* Both stubs keep every register, the exit's the flags too; and can be left at every instruction.
 */
static void walk(void)
{
	memset(&walked, 0, sizeof(walked));
	stepped(timed_function(&timed, 0));
	assert_int_equal(walked.stubs, 2);
	assert_null(walked.in);
}

static void test_registers(void **state)
{
	int full;

	(void)state;
	trap.does = looks;
	trap.always = true;
	walk();
	full = walked.steps;
	assert_true(full > 150);
	walk(); /* its slot is taken already */
	timed.cell[0]->flags = SB_CELL_SPANS | SB_CELL_THREADS;
	walk();
	assert_in_range(walked.steps, 30, full);
	timed.cell[0]->flags = SB_CELL_SPANS;
	timed.cell[0]->span_block = 0;
	walk();
	timed.cell[0]->state = SB_STATE_COUNT;
	walk();
	timed.cell[0]->state = SB_STATE_OFF;
	walk();
	assert_in_range(walked.steps, 10, 60);
}

static sigjmp_buf out_of_handler;

static void leaves(ucontext_t *u)
{
	(void)u;
	siglongjmp(out_of_handler, 1);
}

/* A handler that never comes back: the call is missing, or complete; the next one is a new one. */
static void test_left_anywhere(void **state)
{
	(void)state;
	for (trap.at = 1; trap.at <= MOST_STEPS; trap.at++) {
		struct sb_page_span was = sum_of(0), is;

		trap.steps = 0;
		trap.does = leaves;
		if (sigsetjmp(out_of_handler, 1) == 0)
			stepped(timed_function(&timed, 0));
		is = sum_of(0);
		assert_true(is.begun - was.begun <= 1);
		assert_true(is.calls - was.calls <= is.begun - was.begun);
		spend(100000);
		call(0, nothing, NULL);
		was = sum_of(0);
		assert_int_equal(was.begun, is.begun + 1);
		assert_int_equal(was.calls, is.calls + 1);
		if (trap.steps < trap.at)
			break;
	}
	assert_in_range(trap.at, 150, MOST_STEPS);
	assert_true(~sum_of(0).inv_least < 100000);
}

int main(void)
{
#define TEST(name)   cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TRAPS(name)  cmocka_unit_test_setup_teardown(name, setup_traps, teardown_traps)
#define TRACED(name) cmocka_unit_test_setup_teardown(name, setup_traced, teardown_traps)
	const struct CMUnitTest tests[] = {
		TEST(test_counts),
		TEST(test_buckets_of_all_orders),
		TEST(test_nested),
		TEST(test_recursion),
		TEST(test_abandoned),
		TEST(test_on_in_mid_call),
		TEST(test_on_in_mid_call_of_another),
		TEST(test_epoch),
		TEST(test_filtered),
		TEST(test_no_block),
		TEST(test_torn_entry),
		TEST(test_two_exits),
		TEST(test_gave_way),
		TEST(test_deep),
		cmocka_unit_test_setup_teardown(test_shared_slots, setup_shared, teardown),
		TRAPS(test_handler_anywhere),
		TRAPS(test_taken_anywhere),
		TRAPS(test_freed_anywhere),
		TRAPS(test_left_anywhere),
		TRAPS(test_registers),
		TRACED(test_handler_anywhere),
		TRACED(test_taken_anywhere),
		TRACED(test_freed_anywhere),
		TRACED(test_left_anywhere),
		TRACED(test_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
