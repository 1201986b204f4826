/* SPDX-License-Identifier: MIT */
/*
 * Words of a call that are not in registers, with the real stubs: those of the stack and of memory
 * that an argument points to are what they were, whatever page they are in, and where it is not
 * sure that they can be read they are unknown and no thread faults.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "timed.h"
#include "inject/memory.h"
#include "inject/page-trace.h"
#include "inject/stack.h"

enum { PAGE = 4096, WORDS = SB_PAGE_STACKED };

static struct timed timed;
static struct page_trace *trace;

/* The last call that was read. */
static struct {
	size_t n;
	bool known;
	uint64_t word[WORDS];
} got;

static bool ready(void *ctx, uint32_t proc, uint64_t owner, uint64_t first)
{
	(void)ctx;
	(void)proc;
	(void)owner;
	(void)first;
	return true;
}

static void events(void *ctx, uint32_t proc, uint64_t owner, const struct page_event *e, size_t n)
{
	(void)ctx;
	(void)proc;
	(void)owner;
	assert_int_equal(e[n - 1].event.more, 4);
	assert_true(e[n - 1].event.known & SB_KNOWN_RETURNED);
	got.n += n;
	got.known = e[n - 1].event.known & SB_KNOWN_STACKED;
	memcpy(got.word, e[n - 1].value, sizeof(got.word));
	/* The upper half of the second word, and what is returned. */
	assert_int_equal(e[n - 1].value[5], got.word[1] >> 32);
	assert_int_equal(e[n - 1].value[6], 0x77);
}

static const struct page_trace_ops ops = { ready, events, NULL };

static void nothing(void *ctx)
{
	(void)ctx;
}

/* A call of function 0 with its first word at sp, which is a multiple of 16; arg3: in rdx. */
static void call_at(void *sp, const void *arg3)
{
	void *to = (void *)timed_function(&timed, 0), *ret = (void *)0x77;

	asm volatile("mov %%rsp, %%r12\n\tmov %[sp], %%rsp\n\tcall *%[to]\n\tmov %%r12, %%rsp"
		     : "+a"(to), "+D"(ret)
		     : [to] "r"(to), [sp] "r"(sp), "S"(nothing), "d"(arg3)
		     : "rcx", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
	got.n = 0;
	page_trace_drain(trace, &ops, NULL, SIZE_MAX);
	assert_int_equal(got.n, 1);
}

static uint64_t main_stack_end(void)
{
	char line[512];
	unsigned long from, to, end = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			end = to;
	fclose(f);
	return end;
}

static void make(uint8_t follow)
{
	uint16_t *value;

	timed_make_like(
		&timed,
		&(struct timed){ .values = true, .follow = follow, .stack = main_stack_end() },
		true, 64);
	trace = page_trace_open(&timed.page, 0, 0);
	value = timed.cell[0]->value;
	for (int i = 0; i < WORDS; i++)
		value[i] = (uint16_t)(SB_VALUE_STACKED + i);
	value[0] |= SB_VALUE_SUM;
	value[5] = SB_VALUE_STACKED + 1 + SB_VALUE_UPPER;
	value[6] = SB_VALUE_RETURNED;
	timed.cell[0]->shape = page_value_shape(value);
	assert_int_equal(timed.cell[0]->shape, 4 | WORDS << SB_SHAPE_STACKED);
}

static void end(void)
{
	page_trace_free(trace);
	timed_free(&timed);
}

static void fill(uint64_t *word)
{
	for (int i = 0; i < WORDS; i++)
		word[i] = (uint64_t)rand() << 32 | (uint64_t)rand();
}

static void is_known(const uint64_t *word)
{
	assert_true(got.known);
	assert_memory_equal(got.word, word, sizeof(got.word));
}

static void is_unknown(void)
{
	static const uint64_t zeros[WORDS];

	assert_false(got.known);
	assert_memory_equal(got.word, zeros, sizeof(zeros));
}

/* At each distance from the end of a page, on the stack of the thread itself. */
static void own_stack(void)
{
	_Alignas(PAGE) char room[6 * PAGE];

	for (size_t at = 3 * PAGE; at < 4 * PAGE; at += 16) {
		fill((uint64_t *)(void *)(room + at));
		call_at(room + at, NULL);
		is_known((uint64_t *)(void *)(room + at));
	}
}

static void own_memory(void)
{
	_Alignas(PAGE) char room[8 * PAGE];

	for (size_t at = 5 * PAGE; at < 6 * PAGE; at += 8) {
		fill((uint64_t *)(void *)(room + at));
		call_at(room + 4 * PAGE, room + at);
		is_known((uint64_t *)(void *)(room + at));
	}
	/* Below the call is what other calls write; an address that is not whole belongs to no
	 * call. */
	call_at(room + 4 * PAGE, room + 3 * PAGE);
	is_unknown();
	call_at(room + 4 * PAGE, room + 5 * PAGE + 4);
	is_unknown();
}

/* A stack whose end is the end of what may be read, below the thread's own or anywhere. */
static void other_stack(void)
{
	char *map = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	char *top = map + 4 * PAGE;

	assert_true(map != MAP_FAILED);
	mprotect(top, PAGE, PROT_NONE);
	for (size_t below = 0; below <= 256; below += 16) {
		if (below >= sizeof(got.word))
			fill((uint64_t *)(void *)(top - below));
		call_at(top - below, NULL);
		if (below >= sizeof(got.word))
			is_known((uint64_t *)(void *)(top - below));
		else
			is_unknown();
	}
	munmap(map, 5 * PAGE);
}

/* No address is followed out of the stack. */
static void other_memory(void)
{
	static _Alignas(8) const uint64_t word[WORDS] = { 1, 2, 3, 4, 5 };
	_Alignas(PAGE) char room[8 * PAGE];
	const void *const wrong[] = {
		NULL,	   (void *)1, (void *)-1ul,	      (void *)-8ul,
		(void *)8, word,      (void *)0x7fffffffeff8, (void *)0x8000000000000000
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		call_at(room + 4 * PAGE, wrong[i]);
		is_unknown();
	}
}

static void all_of(void)
{
	own_stack();
	other_stack();
}

static void all_of_memory(void)
{
	own_memory();
	other_memory();
}

static void *in_thread(void *what)
{
	struct memory mem;
	struct arch_regs regs;
	uint64_t fs;

	assert_int_equal(memory_open(&mem, getpid(), NULL), 0);
	memset(&regs, 0, sizeof(regs));
	asm("rdfsbase %0" : "=r"(fs));
	regs.gp.rsp = (uint64_t)__builtin_frame_address(0);
	regs.gp.fs_base = fs;
	timed.record.stack_word = stack_bounds_at(&mem, &regs);
	assert_true(timed.record.stack_word);
	memory_close(&mem);
	((void (*)(void))what)();
	timed.record.stack_word = 0;
	return NULL;
}

static void by_thread(void (*what)(void))
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, (void *)what);
	pthread_join(thread, NULL);
}

static void test_first_thread(void **state)
{
	(void)state;
	make(0);
	all_of();
	end();
	make(3);
	all_of_memory();
	end();
}

static void test_other_threads(void **state)
{
	(void)state;
	make(0);
	by_thread(all_of);
	end();
	make(3);
	by_thread(all_of_memory);
	end();
}

/* Nothing is known of the stacks: only the page of the return address is read. */
static void *unbounded(void *arg)
{
	_Alignas(PAGE) char room[6 * PAGE];

	(void)arg;
	call_at(room + 4 * PAGE - 48, NULL);
	assert_true(got.known);
	call_at(room + 4 * PAGE - 16, NULL);
	is_unknown();
	return NULL;
}

static void test_unknown_bounds(void **state)
{
	pthread_t thread;

	(void)state;
	make(0);
	pthread_create(&thread, NULL, unbounded, NULL);
	pthread_join(thread, NULL);
	end();
}

/* Sums: of calls whose words are known, alone. */
static void test_sums(void **state)
{
	_Alignas(PAGE) char room[6 * PAGE];
	struct timed_sums {
		uint64_t sum, n;
	} expected = { 0, 0 };
	struct sb_page_span sum;
	int slots;

	(void)state;
	make(0);
	for (size_t at = 3 * PAGE; at < 4 * PAGE; at += 16) {
		uint64_t *word = (void *)(room + at);

		fill(word);
		word[0] >>= 20;
		call_at(word, NULL);
		expected.sum += word[0];
		expected.n++;
	}
	other_stack();
	sum = timed_sum(&timed, 0, &slots);
	assert_true(sum.summed[0] > expected.n);
	assert_int_equal(sum.calls - sum.summed[0], 3);
	assert_true(sum.sum[0] >= expected.sum);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_thread),
		cmocka_unit_test(test_other_threads),
		cmocka_unit_test(test_unknown_bounds),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
