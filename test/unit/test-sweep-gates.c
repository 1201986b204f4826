/* SPDX-License-Identifier: MIT */
/* Gates that forbid a verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "sweep-judged.h"
#include "sweep/verdict.h"

/* An open loop whose source is no function: there is no control to tell. */
static void test_not_felt_by_an_idle_program_is_not_hidden(void **state)
{
	struct sweep_result *res = judged(0, 0.05);

	(void)state;
	res->gates.control = SWEEP_UNKNOWN;
	verdict_load(&res->gates, 0.1, 0.3, NULL, NULL);
	verdict_load_seen(res);
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(res->target[0].reason, "--response"));
	verdict_load(&res->gates, 0.1, 0.99, NULL, NULL);
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_HIDDEN);
	sweep_result_free(res);
}

static void test_gates_hold_for_the_screened_too(void **state)
{
	struct sweep_result *res = judged(0, 0.05);
	struct sweep_target *target = &res->target[0];

	(void)state;
	target->screened = true;
	target->blocks = 0;
	target->verdict = VERDICT_HIDDEN;
	target->kappa = (struct sweep_estimate){ NAN, -INFINITY, 0.05 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_HIDDEN);
	res->gates.load = LOAD_OPEN;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INVALID);
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_felt_by_an_idle_program_is_not_hidden),
		cmocka_unit_test(test_gates_hold_for_the_screened_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
