/* SPDX-License-Identifier: MIT */
/* What devices did, added up: the busy time is the union of the spans, as brute force finds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "trace/devices.h"

enum { TIME = 20000 };

static void add(struct devices *d, int32_t pid, uint64_t device, const char *kind, const char *name,
		uint64_t start, uint64_t ns)
{
	struct trace_value v[2] = { { .type = VALUE_U32, .known = true, .value = device },
				    { .type = VALUE_U64, .known = true, .value = 10 } };
	struct trace_span span = { .start_ns = start, .dur_ns = ns, .n_values = 2, .value = v };

	strcpy(v[0].name, TRACE_DEVICE_NUMBER);
	strcpy(v[1].name, TRACE_DEVICE_BYTES);
	devices_add(d, pid, kind, name, &span);
}

static void unions(void **state)
{
	static bool busy[2][TIME];

	(void)state;
	for (unsigned int seed = 0; seed < 200; seed++) {
		struct devices d = { 0 };
		uint64_t want[2] = { 0 };

		srand(seed);
		memset(busy, 0, sizeof(busy));
		for (int i = 0; i < 300; i++) {
			uint64_t start = (uint64_t)rand() % (TIME - 200),
				 ns = (uint64_t)rand() % 200;
			uint64_t device = (uint64_t)rand() % 2;

			memset(busy[device] + start, true, ns);
			add(&d, 1, device, TRACE_DEVICE_KERNEL, "k", start, ns);
		}
		for (int i = 0; i < TIME; i++) {
			want[0] += busy[0][i];
			want[1] += busy[1][i];
		}
		devices_finish(&d);
		assert_int_equal(d.n_busy, 2);
		for (size_t i = 0; i < 2; i++) {
			assert_false(d.busy[i].late);
			assert_int_equal(d.busy[i].busy_ns, want[d.busy[i].device]);
		}
		devices_free(&d);
	}
}

/* More than it keeps open: in order all is known, and one that comes too late makes it unknown. */
static void bounded(void **state)
{
	struct devices d = { 0 };
	uint64_t n = 3 * DEVICES_OPEN;

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		add(&d, 7, 0, TRACE_DEVICE_KERNEL, "k", 100 * (i ^ 1), 60);
	assert_false(d.busy[0].late);
	add(&d, 7, 1, TRACE_DEVICE_KERNEL, "k", 5, 5);
	assert_false(d.busy[0].late);
	add(&d, 7, 0, TRACE_DEVICE_KERNEL, "k", 5, 5);
	assert_true(d.busy[0].late);
	devices_finish(&d);
	assert_int_equal(d.busy[1].busy_ns, 5);
	assert_int_equal(d.kernels.n, n + 2);
	devices_free(&d);

	for (uint64_t i = 0; i < n; i++)
		add(&d, 7, 0, TRACE_DEVICE_KERNEL, "k", 100 * (i ^ 1), 60);
	devices_finish(&d);
	assert_int_equal(d.busy[0].busy_ns, 60 * n);
	devices_free(&d);
}

static void sums(void **state)
{
	struct devices d = { 0 };
	char name[32];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		add(&d, 1, 0, TRACE_DEVICE_KERNEL, name, 10, (uint64_t)i);
	}
	add(&d, 1, 0, TRACE_DEVICE_KERNEL, "k7", 10, 5000000);
	add(&d, 1, 0, TRACE_DEVICE_COPY, "copy", 10, 3);
	add(&d, 2, 0, TRACE_DEVICE_COPY, "copy", 10, 4);
	add(&d, 2, 0, TRACE_DEVICE_MEMSET, "memset", 10, 5);
	devices_finish(&d);
	assert_int_equal(d.kernels.n, 5001);
	assert_int_equal(d.kernels.ns, 5000 * 4999 / 2 + 5000000);
	assert_int_equal(d.n_rows, DEVICES_KERNELS);
	assert_int_equal(d.kernels_left, 5000 - DEVICES_KERNELS);
	assert_string_equal(d.row[0].name, "k7");
	assert_int_equal(d.row[0].n, 2);
	assert_int_equal(d.row[0].min_ns, 7);
	assert_int_equal(d.row[0].max_ns, 5000000);
	assert_true(d.copies.n == 2 && d.copies.ns == 7 && d.copied_bytes == 20);
	assert_true(d.memsets.n == 1 && d.memsets.ns == 5);
	assert_int_equal(d.n_busy, 2);
	devices_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unions),
		cmocka_unit_test(bounded),
		cmocka_unit_test(sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
