/* SPDX-License-Identifier: MIT */
/* Copies by what their calls say of the direction, and by nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "trace/copies.h"

static void add(struct copies *c, const char *function, int64_t bytes, int64_t kind, int64_t result)
{
	struct trace_value value[3] = {
		{ "result", VALUE_I32, true, (uint64_t)result, NULL },
		{ "bytes", VALUE_U64, bytes >= 0, (uint64_t)bytes, NULL },
		{ "kind", VALUE_U32, kind >= 0, (uint64_t)kind, NULL },
	};
	struct trace_span span = { .dur_ns = 3, .n_values = 3, .value = value };

	copies_add(c, function, &span);
}

static void test_directions(void **state)
{
	static const struct {
		const char *function;
		int64_t kind;
		enum copies_direction direction; /* COPIES_DIRECTIONS: it is no copy */
	} rows[] = {
		{ "cuMemcpyHtoD_v2", -1, COPIES_TO_DEVICE },
		{ "cuMemcpyHtoAAsync_v2", -1, COPIES_TO_DEVICE },
		{ "cuMemcpyDtoHAsync_v2_ptsz", -1, COPIES_TO_HOST },
		{ "cuMemcpyAtoH_v2", -1, COPIES_TO_HOST },
		{ "cuMemcpyDtoD_v2", -1, COPIES_ON_DEVICE },
		{ "cuMemcpyDtoA_v2", -1, COPIES_ON_DEVICE },
		{ "cuMemcpyPeerAsync", -1, COPIES_PEER },
		{ "cuMemcpy3DPeer", -1, COPIES_PEER },
		{ "cuMemcpy", -1, COPIES_UNKNOWN },
		{ "cuMemcpyAsync", -1, COPIES_UNKNOWN },
		{ "cuMemcpy2D_v2", -1, COPIES_UNKNOWN },
		{ "cudaMemcpy", 0, COPIES_ON_HOST },
		{ "cudaMemcpy", 1, COPIES_TO_DEVICE },
		{ "cudaMemcpyAsync", 2, COPIES_TO_HOST },
		{ "cudaMemcpyAsync_ptsz", 3, COPIES_ON_DEVICE },
		{ "cudaMemcpy", 4, COPIES_UNKNOWN },
		{ "cudaMemcpy", -1, COPIES_UNKNOWN },
		{ "cudaMemcpyToSymbol", -1, COPIES_UNKNOWN },
		{ "cuGraphAddMemcpyNode", 1, COPIES_DIRECTIONS },
		{ "cuMemAlloc_v2", 1, COPIES_DIRECTIONS },
		{ "cuMemsetD32_v2", 1, COPIES_DIRECTIONS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct copies c = { 0 };

		add(&c, rows[i].function, 5, rows[i].kind, 0);
		for (int d = 0; d < COPIES_DIRECTIONS; d++) {
			assert_int_equal(c.of[d].n, d == (int)rows[i].direction);
			assert_int_equal(c.of[d].bytes, 5 * c.of[d].n);
			assert_int_equal(c.of[d].total_ns, 3 * c.of[d].n);
		}
	}
}

static void test_sizes_and_failures(void **state)
{
	struct copies c = { 0 };

	(void)state;
	add(&c, "cuMemcpyHtoD_v2", 100, -1, 0);
	add(&c, "cuMemcpyHtoD_v2", 100, -1, 1);
	add(&c, "cuMemcpyHtoD_v2", -1, -1, 0);
	add(&c, NULL, 5, -1, 0);
	assert_int_equal(c.of[COPIES_TO_DEVICE].n, 2);
	assert_int_equal(c.of[COPIES_TO_DEVICE].bytes, 100);
	assert_int_equal(c.of[COPIES_TO_DEVICE].unsized, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_sizes_and_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
