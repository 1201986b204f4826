/* SPDX-License-Identifier: MIT */
/* The share of a thread's time that its delays take, where a crowd of threads interrupts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "src/session/inject/priv.h"

#define SECOND 1e9

static void test_interruptions_do_not_count(void **state)
{
	(void)state;
	assert_true(slow_share(0, 0, SECOND) == 0);
	assert_true(slow_share(0.25 * SECOND, 0, SECOND) == 0.25);
	assert_true(slow_share(0.25 * SECOND, 0.5 * SECOND, SECOND) == 0.5);
	assert_true(slow_share(2 * SECOND, 0, SECOND) == 1);
}

/* One delay of 51 us that waited for a processor for longer than the time between the looks. */
static void test_an_older_interruption_is_not_all_of_the_time(void **state)
{
	(void)state;
	assert_true(slow_share(51000, 0.99999 * SECOND, SECOND) < 0.001);
	assert_true(slow_share(51000, 3 * SECOND, SECOND) < 0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interruptions_do_not_count),
		cmocka_unit_test(test_an_older_interruption_is_not_all_of_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
