/* SPDX-License-Identifier: MIT */
/* Which ways out of a function are found, and which functions are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "inject/exits.h"

enum { TEXT_SIZE = 0x400, OTHER = 0x200, PART = 0x300, PART_SIZE = 16 };

#define BASE 0x401000ULL

static uint8_t text[TEXT_SIZE];
static struct exits exits;
static char detail[64];

/* A function at OTHER; a part of ours at PART; between them nothing that is known. */
static enum exits_place place(void *ctx, uint64_t addr, struct exits_part *part)
{
	(void)ctx;
	*part = (struct exits_part){ BASE + PART, BASE + PART + PART_SIZE };
	if (addr >= part->start && addr < part->end)
		return EXITS_PART;
	return addr == BASE + OTHER ? EXITS_FUNCTION : EXITS_UNKNOWN;
}

static enum plan_refusal find(const void *code, size_t len)
{
	struct plan_request req = {
		.func = BASE,
		.func_end = BASE + len,
		.text = text,
		.text_addr = BASE,
		.text_len = sizeof(text),
	};

	free(exits.site);
	memcpy(text, code, len);
	return exits_find(&req, place, NULL, &exits, detail, sizeof(detail));
}

#define FIND(...) find((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static int clear(void **state)
{
	(void)state;
	memset(text, 0x90, sizeof(text));
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(exits.site);
	exits = (struct exits){ 0 };
	return 0;
}

static void each_return_is_an_exit(void **state)
{
	(void)state;
	/* test %edi,%edi; je +1; ret; xor %eax,%eax; ret */
	assert_int_equal(FIND(0x85, 0xff, 0x74, 0x01, 0xc3, 0x31, 0xc0, 0xc3), PLAN_OK);
	assert_int_equal(exits.count, 2);
	assert_int_equal(exits.site[0].addr, BASE + 4);
	assert_int_equal(exits.site[1].addr, BASE + 7);
	assert_false(exits.tables);
}

static void a_jump_to_a_function_is_an_exit(void **state)
{
	(void)state;
	assert_int_equal(FIND(0x90, 0xe9, 0xfa, 0x01, 0, 0), PLAN_OK); /* jmp OTHER */
	assert_int_equal(exits.count, 1);
	assert_int_equal(exits.site[0].addr, BASE + 1);
}

static void a_conditional_jump_to_a_function_is_an_exit(void **state)
{
	(void)state;
	/* je OTHER; ret */
	assert_int_equal(FIND(0x0f, 0x84, 0xfa, 0x01, 0, 0, 0xc3), PLAN_OK);
	assert_int_equal(exits.count, 2);
	assert_int_equal(exits.site[0].addr, BASE);
	assert_true(exits.conditional);
	/* je +1; ret; ret */
	assert_int_equal(FIND(0x74, 0x01, 0xc3, 0xc3), PLAN_OK);
	assert_false(exits.conditional);
}

static void a_part_elsewhere_has_exits(void **state)
{
	(void)state;
	text[PART + 3] = 0xc3;
	memcpy(text + PART + 4, (const uint8_t[]){ 0xe9, 0xf7, 0xfc, 0xff, 0xff },
	       5); /* jmp BASE */
	memset(text + PART + 9, 0xcc, PART_SIZE - 9);
	/* je PART+2; ret */
	assert_int_equal(FIND(0x0f, 0x84, 0xfc, 0x02, 0, 0, 0xc3), PLAN_OK);
	assert_int_equal(exits.count, 2);
	assert_int_equal(exits.site[1].addr, BASE + PART + 3);
	assert_int_equal(exits.site[1].part.start, BASE + PART);
}

static void a_switch_stays_inside(void **state)
{
	(void)state;
	/* movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; ret */
	assert_int_equal(FIND(0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0xc3), PLAN_OK);
	assert_int_equal(exits.count, 1);
	assert_true(exits.tables);
	/* notrack jmp *%rcx; ret */
	assert_int_equal(FIND(0x3e, 0xff, 0xe1, 0xc3), PLAN_OK);
	assert_int_equal(exits.count, 1);
	assert_true(exits.tables);
	/* jmp *0x402000(,%rdi,8); ret */
	assert_int_equal(FIND(0xff, 0x24, 0xfd, 0x00, 0x20, 0x40, 0x00, 0xc3), PLAN_OK);
	assert_int_equal(exits.count, 1);
	assert_true(exits.tables);
}

static void a_call_through_a_pointer_leaves(void **state)
{
	(void)state;
	/* jmp *0x10(%rdi) */
	assert_int_equal(FIND(0xff, 0x67, 0x10), PLAN_OK);
	assert_int_equal(exits.count, 1);
	/* mov %rsi,%rdi; jmp *%rdx: an argument */
	assert_int_equal(FIND(0x48, 0x89, 0xf7, 0xff, 0xe2), PLAN_OK);
	assert_int_equal(exits.count, 1);
	/* mov (%rax,%rcx,8),%rdx; mov 8(%rdi),%rax; pop %rbx; jmp *%rax */
	assert_int_equal(FIND(0x48, 0x8b, 0x14, 0xc8, 0x48, 0x8b, 0x47, 0x08, 0x5b, 0xff, 0xe0),
			 PLAN_OK);
	assert_int_equal(exits.count, 1);
}

static void what_may_be_either_is_refused(void **state)
{
	(void)state;
	/* mov (%rdx,%rax,8),%rax; jmp *%rax: a table of labels or of functions */
	assert_int_equal(FIND(0x48, 0x8b, 0x04, 0xc2, 0xff, 0xe0), PLAN_EXIT_INDIRECT);
	/* jmp *(%rdx,%rax,8) */
	assert_int_equal(FIND(0xff, 0x24, 0xc2), PLAN_EXIT_INDIRECT);
	/* movslq (%rdx,%rax,4),%rcx; lea 8(%rcx),%rax; jmp *%rax */
	assert_int_equal(FIND(0x48, 0x63, 0x0c, 0x82, 0x48, 0x8d, 0x41, 0x08, 0xff, 0xe0),
			 PLAN_EXIT_INDIRECT);
	assert_int_equal(exits.count, 0);
	assert_string_equal(detail, "at 0x401008");
}

static void what_has_no_known_end_is_refused(void **state)
{
	(void)state;
	assert_int_equal(FIND(0x31, 0xc0, 0x90), PLAN_EXIT_RUNS_ON);
	/* a call that does not return, behind a ret */
	assert_int_equal(FIND(0x75, 0x01, 0xc3, 0xe8, 0xf8, 0x01, 0, 0), PLAN_OK);
	assert_int_equal(exits.count, 1);
	assert_int_equal(FIND(0xeb, 0xfe), PLAN_EXIT_NONE);
	assert_int_equal(FIND(0xe9, 0x00, 0x01, 0, 0), PLAN_EXIT_ELSEWHERE);
	assert_int_equal(FIND(0x06, 0xc3), PLAN_EXIT_UNDECODABLE);
	/* an instruction that ends behind the function */
	assert_int_equal(find((const uint8_t[]){ 0xc3, 0xb8 }, 2), PLAN_EXIT_RUNS_ON);
}

/* All of the code, of which `size` bytes are the function, before the function at `next`. */
static enum plan_refusal find_on(const void *code, size_t len, size_t size, size_t next)
{
	struct plan_request req = {
		.func = BASE + next - len,
		.func_end = BASE + next - len + size,
		.next = BASE + next,
		.text = text,
		.text_addr = BASE,
		.text_len = sizeof(text),
	};

	free(exits.site);
	memcpy(text + next - len, code, len);
	return exits_find(&req, place, NULL, &exits, detail, sizeof(detail));
}

#define FIND_ON(size, ...)                                                                        \
	find_on((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), size, \
		OTHER)

static void the_end_may_run_on_into_a_function(void **state)
{
	(void)state;
	/* xor %eax,%eax; nop: the no-op is the exit, in the function or behind it */
	assert_int_equal(FIND_ON(2, 0x31, 0xc0, 0x90), PLAN_OK);
	assert_int_equal(exits.count, 1);
	assert_true(exits.site[0].runs_on);
	assert_int_equal(exits.site[0].addr, BASE + OTHER - 1);
	assert_int_equal(exits.site[0].part.end, BASE + OTHER);
	assert_int_equal(FIND_ON(3, 0x31, 0xc0, 0x90), PLAN_OK);
	/* none: the last instruction is; of several the first */
	assert_int_equal(FIND_ON(2, 0x31, 0xc0), PLAN_OK);
	assert_int_equal(exits.site[0].addr, BASE + OTHER - 2);
	assert_int_equal(FIND_ON(2, 0x31, 0xc0, 0x90, 0x66, 0x90), PLAN_OK);
	assert_int_equal(exits.site[0].addr, BASE + OTHER - 3);
	/* je OTHER, 3 bytes before it: both ways leave */
	assert_int_equal(FIND_ON(2, 0x74, 0x01, 0x90), PLAN_OK);
	assert_int_equal(exits.count, 2);
	assert_true(exits.site[1].runs_on);
}

static void what_runs_on_elsewhere_is_refused(void **state)
{
	(void)state;
	/* not a function's entry */
	assert_int_equal(find_on((const uint8_t[]){ 0x31, 0xc0 }, 2, 2, OTHER - 8),
			 PLAN_EXIT_RUNS_ON);
	assert_int_equal(exits.count, 0);
	/* other code between; int3; a jump that is not taken, with no no-op behind it */
	assert_int_equal(FIND_ON(2, 0x31, 0xc0, 0x31, 0xc0), PLAN_EXIT_RUNS_ON);
	assert_int_equal(FIND_ON(2, 0x31, 0xc0, 0xcc, 0x90), PLAN_EXIT_RUNS_ON);
	assert_int_equal(FIND_ON(2, 0x74, 0x00), PLAN_EXIT_RUNS_ON);
	/* rt_sigreturn */
	assert_int_equal(FIND_ON(7, 0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0x90), PLAN_EXIT_RUNS_ON);
	/* the stack pointer may be elsewhere: push %rax; sub $8,%rsp; mov %rsp,%rax; push (%rdi) */
	assert_int_equal(FIND_ON(3, 0x50, 0x31, 0xc0, 0x90), PLAN_EXIT_RUNS_ON);
	assert_int_equal(FIND_ON(4, 0x48, 0x83, 0xec, 8, 0x90), PLAN_EXIT_RUNS_ON);
	assert_int_equal(FIND_ON(3, 0x48, 0x89, 0xe0, 0x90), PLAN_EXIT_RUNS_ON);
	assert_int_equal(FIND_ON(2, 0xff, 0x37, 0x90), PLAN_EXIT_RUNS_ON);
	assert_int_equal(FIND_ON(2, 0x0f, 0xa8, 0x90), PLAN_EXIT_RUNS_ON);
	/* shl $4,%rax does not move it */
	assert_int_equal(FIND_ON(4, 0x48, 0xc1, 0xe0, 4, 0x90), PLAN_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_return_is_an_exit, clear, end),
		cmocka_unit_test_setup_teardown(a_jump_to_a_function_is_an_exit, clear, end),
		cmocka_unit_test_setup_teardown(a_conditional_jump_to_a_function_is_an_exit, clear,
						end),
		cmocka_unit_test_setup_teardown(a_part_elsewhere_has_exits, clear, end),
		cmocka_unit_test_setup_teardown(a_switch_stays_inside, clear, end),
		cmocka_unit_test_setup_teardown(a_call_through_a_pointer_leaves, clear, end),
		cmocka_unit_test_setup_teardown(what_may_be_either_is_refused, clear, end),
		cmocka_unit_test_setup_teardown(what_has_no_known_end_is_refused, clear, end),
		cmocka_unit_test_setup_teardown(the_end_may_run_on_into_a_function, clear, end),
		cmocka_unit_test_setup_teardown(what_runs_on_elsewhere_is_refused, clear, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
