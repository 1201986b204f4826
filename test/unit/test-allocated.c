/* SPDX-License-Identifier: MIT */
/* Memory in use: by what calls said, in the order of time, whatever the order in which they come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "trace/allocated.h"

static struct allocated a;

static void add(uint64_t start, int32_t pid, const uint64_t *address, const uint64_t *bytes,
		int64_t result)
{
	struct trace_value value[3] = { { "result", VALUE_I32, true, (uint64_t)result, NULL },
					{ "address", VALUE_PTR, address, address ? *address : 0,
					  NULL },
					{ "bytes", VALUE_U64, true, bytes ? *bytes : 0, NULL } };
	struct trace_span span = {
		.start_ns = start, .dur_ns = 10, .n_values = bytes ? 3 : 2, .value = value
	};

	allocated_add(&a, pid, &span);
}

static void alloc(uint64_t start, int32_t pid, uint64_t address, uint64_t bytes)
{
	add(start, pid, &address, &bytes, 0);
}

static void release(uint64_t start, int32_t pid, uint64_t address)
{
	add(start, pid, &address, NULL, 0);
}

static int teardown(void **state)
{
	(void)state;
	allocated_free(&a);
	return 0;
}

static void test_in_use(void **state)
{
	(void)state;
	/* The address is free and used again; the second one comes first, of another thread. */
	alloc(200, 1, 0x1000, 50);
	release(300, 1, 0x2000);
	alloc(0, 1, 0x1000, 100);
	alloc(20, 1, 0x2000, 7);
	release(150, 1, 0x1000);
	alloc(30, 2, 0x1000, 1000);
	allocated_finish(&a);
	assert_int_equal(a.allocations, 4);
	assert_int_equal(a.bytes, 1157);
	assert_int_equal(a.frees, 2);
	assert_int_equal(a.freed_bytes, 107);
	assert_int_equal(a.live, 2);
	assert_int_equal(a.live_bytes, 1050);
	assert_int_equal(a.peak_bytes, 1107);
	assert_int_equal(a.older, 0);
	assert_int_equal(a.unknown, 0);
}

static void test_what_fails_and_what_is_not_known(void **state)
{
	uint64_t address = 0x1000, bytes = 5;

	(void)state;
	add(0, 1, &address, &bytes, 2);
	add(5, 1, NULL, &bytes, 2);
	release(10, 1, 0x3000);
	release(20, 1, 0);
	alloc(30, 1, 0x1000, 5);
	add(50, 1, &address, NULL, -77);
	release(60, 1, 0x1000);
	release(70, 1, 0x1000);
	allocated_finish(&a);
	assert_int_equal(a.allocations, 1);
	assert_int_equal(a.older, 2);
	assert_int_equal(a.live_bytes, 0);
	assert_int_equal(a.peak_bytes, 5);
	assert_int_equal(a.unknown, 0);
	add(80, 1, NULL, &bytes, 0);
	assert_int_equal(a.unknown, 1);
}

static void test_many(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		alloc(i * 100, 1, (i + 1) << 12, i);
	for (uint64_t i = 0; i < 20000; i += 2)
		release(i * 100 + 50, 1, (i + 1) << 12);
	allocated_finish(&a);
	assert_int_equal(a.live, 10000);
	assert_int_equal(a.live_bytes, 10000ul * 10000);
	assert_int_equal(a.freed_bytes, 9999ul * 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_in_use, teardown),
		cmocka_unit_test_teardown(test_what_fails_and_what_is_not_known, teardown),
		cmocka_unit_test_teardown(test_many, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
