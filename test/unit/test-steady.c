/* SPDX-License-Identifier: MIT */
/* A counter that Prometheus reads never falls, except where it really begins anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/control/steady.h"

#define SHOWS(counter, value, reset, wanted) \
	assert_true(steady_value(s, counter, value, reset) == (wanted))

static void test_a_better_clock_lets_no_counter_fall(void **state)
{
	struct steady *s = steady_new();

	(void)state;
	SHOWS("a 0 0", 1000.0, 0.999, 1000.0);
	SHOWS("a 0 0", 999.999, 0.999, 1000.0);
	SHOWS("a 0 0", 1000.5, 0.999, 1000.5);
	SHOWS("a 0 0", 3, 0.999, 3);
	SHOWS("a 0 0", 4, 0.999, 4);
	SHOWS("a 0 0", 0, 0.999, 0);
	SHOWS("a 1 0", 17, 0, 17);
	SHOWS("a 1 0", 0, 0, 17);
	SHOWS("a 0 0", 0.5, 0.999, 0.5);
	steady_free(s);
	steady_free(NULL);
}

static void test_many_counters_are_apart(void **state)
{
	struct steady *s = steady_new();
	char name[32];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 3000; i++) {
			snprintf(name, sizeof(name), "counter %d", i);
			SHOWS(name, round ? 0 : i, 0, i);
		}
	steady_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_better_clock_lets_no_counter_fall),
		cmocka_unit_test(test_many_counters_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
