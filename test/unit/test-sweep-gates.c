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
	assert_string_equal(res->target[0].remedy.option, "--self-check");
	assert_string_equal(res->target[0].remedy.value, "");
	verdict_load(&res->gates, 0.1, 0.99, NULL, NULL);
	verdict_judge(res);
	assert_int_equal(res->target[0].verdict, VERDICT_HIDDEN);
	assert_null(res->target[0].remedy.option);
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

/*
 * One dose of 30 % is felt nearly in full beyond a slack of 5 %, too; and one that may be felt by
 * two thirds or less may be all beyond a slack: it does not show that a small delay is felt.
 */
static void test_critical_names_the_slack_that_may_be(void **state)
{
	struct sweep_dose dose[2] = { { 0 }, { .x_ns = 300e3 } };
	struct sweep_result *res = judged(0.85, 0.2);
	struct sweep_target *target = &res->target[0];

	(void)state;
	target->t0_ns = 1e6;
	target->dose = dose;
	target->n_doses = 2;
	dose[1].delta_ns = (struct sweep_estimate){ 255e3, 200e3, 310e3 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	assert_non_null(strstr(target->reason, "or all of it beyond a slack; --doses "));
	target->kappa = (struct sweep_estimate){ 0.85, 0.7, 1 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_CRITICAL);
	assert_non_null(strstr(target->reason, "a slack of up to 90us an item is not excluded"));
	target->kappa = (struct sweep_estimate){ 1, 0.95, 1.05 };
	verdict_judge(res);
	assert_string_equal(target->reason, "a delay is felt in full");
	target->slack_kind = SLACK_NONE; /* by more doses */
	target->slack_ns = (struct sweep_estimate){ 0, 0, 80e3 };
	verdict_judge(res);
	assert_non_null(strstr(target->reason, "up to 80us"));
	target->kappa = (struct sweep_estimate){ 1.4, 1.2, 1.6 };
	verdict_judge(res);
	assert_string_equal(target->reason, "a delay is amplified");
	target->slack_ns.hi = 200e3; /* of 300: several doses that do not bound it either */
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	target->kappa = (struct sweep_estimate){ 0.8, 0.2, 1.4 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	target->slack_ns.hi = 100e3;
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_PARTIAL);
	target->kappa = (struct sweep_estimate){ 1.4, 1.2, 1.6 };
	target->lanes = 2;
	verdict_judge(res);
	assert_non_null(strstr(target->reason, "injected into all 2 lanes 0.70 is felt"));
	target->lanes = 1;
	/* More than all of a delay is no part of it. */
	target->slack_kind = SLACK_UNKNOWN;
	target->kappa = (struct sweep_estimate){ 1.95, 0.26, 3.68 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	assert_null(strstr(target->reason, "a part of each delay"));
	target->dose = NULL;
	target->n_doses = 0;
	sweep_result_free(res);
}

static void decided_by(const struct sweep_target *target, const char *option, const char *value,
		       bool longer)
{
	assert_int_equal(target->verdict, VERDICT_INCONCLUSIVE);
	assert_string_equal(target->remedy.option, option);
	assert_string_equal(target->remedy.value, value);
	assert_int_equal(target->remedy.longer, longer);
	assert_non_null(strstr(target->reason, option));
	assert_non_null(strstr(target->reason, value));
}

/* Programs need not read the reason. */
static void test_the_remedy_is_the_option_that_the_reason_names(void **state)
{
	struct sweep_dose dose[2] = { { 0 }, { .delay_ns = 40000, .x_ns = 300e3 } };
	struct sweep_result *res = judged(0.6, 0.1);
	struct sweep_target *target = &res->target[0];

	(void)state;
	target->t0_ns = 1e6;
	target->dose = dose;
	target->n_doses = 2;
	dose[1].delta_ns = (struct sweep_estimate){ 180e3, 150e3, 210e3 };
	verdict_judge(res);
	decided_by(target, "--doses", "10us,20us,40us", false);
	target->lanes_unclear = true;
	target->range[1] = (struct sweep_estimate){ 0.02, 0, 0.04 };
	verdict_judge(res);
	decided_by(target, "--lane", "", false);
	target->settle_s = 1;
	target->kappa = (struct sweep_estimate){ 0.3, 0.2, 0.4 };
	verdict_judge(res);
	decided_by(target, "--guard", "3s", true);
	target->settle_s = 0;
	target->lanes_unclear = false;
	target->kappa = (struct sweep_estimate){ 1, 0.95, 1.05 };
	verdict_judge(res);
	assert_int_equal(target->verdict, VERDICT_CRITICAL);
	assert_null(target->remedy.option);
	target->dose = NULL;
	target->n_doses = 0;
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_felt_by_an_idle_program_is_not_hidden),
		cmocka_unit_test(test_gates_hold_for_the_screened_too),
		cmocka_unit_test(test_critical_names_the_slack_that_may_be),
		cmocka_unit_test(test_the_remedy_is_the_option_that_the_reason_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
