/* SPDX-License-Identifier: MIT */
/* Which two words of a thread's control block are the bounds of its stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "inject/stack.h"

enum { PAGE = 4096 };

static const uint64_t low = 0x7f0000000000, size = 8 << 20, block = 0x7f00007ff6c0;

static uint64_t bounds(uint64_t first, uint64_t second, uint64_t sp)
{
	/* as glibc's block begins, with bounds behind it */
	const uint64_t words[] = { block, 0x55500000, block, 1, first, second, PAGE, PAGE };

	return stack_low(words, sizeof(words) / sizeof(*words), sp, block);
}

static void test_glibc(void **state)
{
	uint64_t sp = block - 3 * PAGE;

	(void)state;
	assert_true(bounds(low, size, sp) == low);
	assert_true(bounds(low, size, low) == low);	     /* to the last byte */
	assert_true(bounds(low, size, low - 8) == 0);	     /* what is mapped below */
	assert_true(bounds(low, size / 2, sp) == 0);	     /* ends too early */
	assert_true(bounds(low, size + (1 << 20), sp) == 0); /* goes on above */
	assert_true(bounds(0, block + PAGE, sp) == 0);	     /* a leader's */
	assert_true(bounds(low, 0, sp) == 0);
	assert_true(bounds(low, low, sp) == 0);
	assert_true(bounds(~0ull - 8, PAGE, sp) == 0);
	assert_true(bounds(block - PAGE, 2 * PAGE, sp) == 0); /* a small one, and below it */
}

static void test_musl(void **state)
{
	uint64_t top = block - 256, sp = block - 3 * PAGE;

	(void)state;
	assert_true(bounds(top, top - low, sp) == low);
	assert_true(bounds(top, top - low, low) == low);
	assert_true(bounds(top, top - low, low - 8) == 0);
	assert_true(bounds(top - size / 2, size / 2, low + PAGE) == 0); /* far below the block */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_glibc),
					    cmocka_unit_test(test_musl) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
