/* SPDX-License-Identifier: MIT */
/* Launches, gaps and waits of one thread: against figures worked out by hand and by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/cli/role.h"
#include "trace/kernels.h"
#include "trace/sum.h"
#include "trace/launch.h"
#include "trace/returns.h"
#include "traces.h"

#define CALL LAUNCH_CALL
#define WAIT LAUNCH_WAIT

enum { MANY = 200000 };

static struct hist_pool pool;

static void finish(struct launch *l)
{
	launch_finish(l, &pool);
	hist_free(&pool);
}

static void test_gaps_and_waits(void **state)
{
	struct launch l = { 0 };

	(void)state;
	launch_add(&l, &pool, WAIT, 100, 50); /* before the first launch: in no gap */
	launch_add(&l, &pool, CALL, 1000, 10);
	launch_add(&l, &pool, CALL, 1020, 10); /* gap 10 */
	launch_add(&l, &pool, WAIT, 1100, 300);
	launch_add(&l, &pool, WAIT, 1500, 200);
	launch_add(&l, &pool, CALL, 2030, 5); /* gap 1000, 500 of it waited */
	launch_add(&l, &pool, WAIT, 3000, 7); /* behind the last launch */
	launch_finish(&l, &pool);
	assert_int_equal(l.launches, 3);
	assert_int_equal(l.gap.n, 2);
	assert_int_equal(l.gap.total_ns, 1010);
	assert_int_equal(l.gap.min_ns, 10);
	assert_int_equal(l.gap.max_ns, 1000);
	assert_int_equal(l.gap_wait_ns, 500);
	assert_int_equal(l.wait.n, 4);
	assert_int_equal(l.wait.total_ns, 557);
	assert_int_equal(l.first_ns, 100);
	assert_int_equal(l.last_ns, 3007);
	assert_int_equal(l.unsure, 0);
	assert_true(launch_quantile(&pool, &l.gap, 0.5) == 10);
	assert_true(launch_quantile(&pool, &l.gap, 0.9) > 960);
	assert_true(launch_quantile(&pool, &l.gap, 0.9) <= 1000);
	hist_free(&pool);
}

static void test_nothing(void **state)
{
	struct launch l = { 0 };

	(void)state;
	launch_add(&l, &pool, CALL, 0, 0);
	launch_finish(&l, &pool);
	assert_int_equal(l.launches, 1);
	assert_int_equal(l.gap.n, 0);
	assert_true(launch_quantile(&pool, &l.gap, 0.5) < 0);
	finish(&l);
}

/* A launch that makes another one comes after it: both are one, from the outer one's begin. */
static void test_a_launch_in_a_launch_is_one(void **state)
{
	struct launch l = { 0 };

	(void)state;
	launch_add(&l, &pool, CALL, 100, 10);
	launch_add(&l, &pool, CALL, 205, 3);
	launch_add(&l, &pool, CALL, 210, 3);
	launch_add(&l, &pool, CALL, 200, 12); /* holds the two, which end 1 ns later than it */
	launch_add(&l, &pool, WAIT, 305, 5);
	launch_add(&l, &pool, CALL, 300, 20); /* holds a wait */
	finish(&l);
	assert_int_equal(l.launches, 3);
	assert_int_equal(l.gap.total_ns, 90 + 87);
	assert_int_equal(l.wait.n, 0);
	assert_int_equal(l.gap_wait_ns, 0);
	assert_int_equal(l.unsure, 0);
}

/* One that holds more calls than are kept, or crosses another, is counted, and no gap is negative.
 */
static void test_what_is_not_exact_is_counted(void **state)
{
	struct launch l = { 0 }, crossing = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 3 * LAUNCH_OPEN; i++)
		launch_add(&l, &pool, CALL, 1000 + 10 * i, 5);
	launch_add(&l, &pool, CALL, 900, 10000);
	finish(&l);
	assert_int_equal(l.unsure, 1);
	assert_true(l.gap.total_ns < 10000);
	launch_add(&crossing, &pool, CALL, 100, 50);
	launch_add(&crossing, &pool, CALL, 120, 100);
	finish(&crossing);
	assert_int_equal(crossing.unsure, 1);
	assert_int_equal(crossing.launches, 2);
	assert_int_equal(crossing.gap.total_ns, 0);
}

static void test_many(void **state)
{
	uint64_t seed = 7, now = 1, gaps = 0, waited = 0, in_gaps = 0, since = 0, end = 0;
	struct launch l = { 0 };
	size_t launches = 0, waits = 0;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		enum launch_role role = trace_random(&seed) % 3 ? CALL : WAIT;
		uint64_t start = now += trace_random(&seed) % 1000, dur = trace_random(&seed) % 50;

		launch_add(&l, &pool, role, start, dur);
		now += dur;
		if (role == WAIT) {
			waits++;
			waited += dur;
			since += dur;
			continue;
		}
		gaps += launches ? start - end : 0;
		in_gaps += launches ? since : 0;
		since = 0;
		end = now;
		launches++;
	}
	finish(&l);
	assert_int_equal(l.launches, launches);
	assert_int_equal(l.gap.n, launches - 1);
	assert_int_equal(l.gap.total_ns, gaps);
	assert_int_equal(l.gap_wait_ns, in_gaps);
	assert_int_equal(l.wait.n, waits);
	assert_int_equal(l.wait.total_ns, waited);
	assert_int_equal(l.unsure, 0);
}

/* ---- what calls return ---- */

static void returns(struct returns *r, uint32_t function, const char *name, bool known,
		    int64_t code)
{
	struct trace_value v[2] = { { .name = "bytes", .known = true, .value = 5 } };
	struct trace_span span = { .function = function, .n_values = 2, .value = v };

	snprintf(v[1].name, sizeof(v[1].name), "%s", name);
	v[1].known = known;
	v[1].value = (uint64_t)code;
	returns_add(r, &span);
}

static void test_codes_are_counted_by_function(void **state)
{
	struct returns r = { 0 };

	(void)state;
	returns(&r, 1, "result", true, 0);
	returns(&r, 1, "result", true, 2);
	returns(&r, 2, "result", true, 2);
	returns(&r, 2, "result", true, -2);
	returns(&r, 1, "result", true, 2);
	returns(&r, 1, "result", false, 0); /* it ended in another function */
	returns(&r, 1, "results", true, 7);
	assert_int_equal(r.known, 5);
	assert_int_equal(r.failed, 4);
	assert_int_equal(r.n, 3);
	assert_int_equal(r.row[0].calls, 2);
	assert_true(r.row[2].code == -2);
	assert_int_equal(r.others, 0);
}

static void test_codes_are_bounded(void **state)
{
	struct returns r = { 0 };

	(void)state;
	for (int64_t i = 1; i <= RETURNS_MAX + 50; i++)
		returns(&r, 1, "result", true, i);
	returns(&r, 1, "result", true, 1);
	assert_int_equal(r.n, RETURNS_MAX);
	assert_int_equal(r.others, 50);
	assert_int_equal(r.failed, RETURNS_MAX + 51);
	assert_int_equal(r.row[0].calls, 2);
}

static void test_kernels_are_those_of_a_process(void **state)
{
	struct trace_value v = { .name = "function", .type = VALUE_PTR, .known = true };
	struct trace_span span = { .dur_ns = 7, .n_values = 1, .value = &v };
	struct kernels k = { 0 };

	(void)state;
	v.value = 0x1000;
	kernels_add(&k, 1, 0, &span);
	kernels_add(&k, 1, 0, &span);
	kernels_add(&k, 2, 0, &span);
	kernels_add(&k, 2, 1, &span);
	assert_int_equal(k.n, 3);
	assert_int_equal(k.row[0].launches, 2);
	assert_int_equal(k.row[0].total_ns, 14);
	v.known = false;
	kernels_add(&k, 1, 0, &span);
	span.n_values = 0;
	kernels_add(&k, 1, 0, &span);
	assert_int_equal(k.unknown, 2);
	v.known = true;
	span.n_values = 1;
	for (v.value = 1; v.value <= KERNELS_MAX; v.value++)
		kernels_add(&k, 3, 0, &span);
	assert_int_equal(k.n, KERNELS_MAX);
	assert_int_equal(k.others, 3);
}

static void test_launches_by_name(void **state)
{
	struct trace_value v = { .name = "function", .type = VALUE_PTR, .known = true };
	struct trace_span span = { .dur_ns = 7, .n_values = 1, .value = &v };
	static const struct {
		int32_t pid;
		unsigned int api;
		uint64_t handle;
		const char *name;
	} launched[] = {
		{ 1, 0, 16, NULL }, { 1, 0, 16, "a" },	{ 2, 0, 32, "a" },
		{ 2, 1, 32, "a" },  { 1, 0, 48, NULL }, { 1, 0, 16, "a" },
	};
	struct kernels k = { 0 };
	struct kernels_name *name;
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(launched) / sizeof(*launched); i++) {
		v.value = launched[i].handle;
		span.kernel = launched[i].name;
		kernels_add(&k, launched[i].pid, launched[i].api, &span);
	}
	assert_int_equal(k.n, 5);
	name = kernels_by_name(&k, &n);
	assert_int_equal(n, 3);
	assert_string_equal(name[0].name, "a");
	assert_int_equal(name[0].launches, 3);
	assert_int_equal(name[0].total_ns, 21);
	assert_int_equal(name[0].handles, 2);
	assert_null(name[1].name);
	assert_int_equal(name[1].handles, 2);
	assert_int_equal(name[2].api, 1);
	free(name);
	kernels_free(&k);
	name = kernels_by_name(&k, &n);
	assert_int_equal(n, 0);
	free(name);
}

static int role(const char *name, const char *module, unsigned int *api)
{
	struct trace_function f = { 1, false, name, module };
	struct sum_role r = role_of(&f);

	*api = r.api;
	return r.role;
}

/* By the presets that lie beside the program: here beside the test. */
static void test_roles(void **state)
{
	unsigned int api;

	(void)state;
	assert_int_equal(role("cuLaunchKernel", NULL, &api), LAUNCH_NONE);
	assert_int_equal(role(NULL, "libcuda.so.1", &api), LAUNCH_NONE);
	assert_int_equal(role("cuLaunchKernel", "libother.so.1", &api), LAUNCH_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps_and_waits),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_a_launch_in_a_launch_is_one),
		cmocka_unit_test(test_what_is_not_exact_is_counted),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_codes_are_counted_by_function),
		cmocka_unit_test(test_codes_are_bounded),
		cmocka_unit_test(test_kernels_are_those_of_a_process),
		cmocka_unit_test(test_launches_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
