/* SPDX-License-Identifier: MIT */
/* A sweep's table for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"
#include "src/out/sweep-words.h"
#include "src/out/sweep.h"

static char *table(const struct sweep_result *res)
{
	struct out_sweep_about about = { .n_targets = res->n_targets };
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	out_sweep_table(to, res, &about);
	fclose(to);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* A sweep of a whole library may leave hundreds without their turn. */
static void test_a_reason_is_told_once(void **state)
{
	struct sweep_result *res = sweep_result_new(120);
	char spec[32], *text;

	(void)state;
	for (size_t i = 0; i < res->n_targets; i++) {
		snprintf(spec, sizeof(spec), "f%zu", i);
		res->target[i].spec = must_strdup(spec);
		snprintf(res->target[i].reason, sizeof(res->target[i].reason), "%s",
			 i == 1 ? "a reason of its own" : "no time was left");
	}
	text = table(res);
	assert_non_null(strstr(text, "\nf0, f2, f3 and 116 more: no time was left\n"));
	assert_non_null(strstr(text, "\nf1: a reason of its own\n"));
	assert_int_equal(count(text, "no time was left"), 1);
	free(text);
	sweep_result_free(res);
}

/* On a machine without idle time a delay is felt by what waits for a processor. */
static void test_a_crowded_machine_is_named(void **state)
{
	struct sweep_result *res = sweep_result_new(1);
	struct out_sweep_about about = { .n_targets = 1, .busy = 0.96 };
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	(void)state;
	res->target[0].spec = must_strdup("f");
	out_sweep_table(to, res, &about);
	fflush(to);
	assert_non_null(strstr(text, "processors 96 % busy: "));
	fclose(to);
	free(text);
	text = table(res);
	assert_null(strstr(text, "busy"));
	free(text);
	about.busy = NAN;
	assert_null(out_sweep_crowded(&about));
	sweep_result_free(res);
}

/* A share is one of the program as it is, not of one whose hooks cost more than its work. */
static void test_a_share_is_of_the_item_without_hooks(void **state)
{
	struct sweep_result *res = sweep_result_new(1);
	struct sweep_target *t = &res->target[0];
	char *text;

	(void)state;
	t->spec = must_strdup("f");
	t->verdict = VERDICT_CRITICAL;
	t->gain_ceiling_ns = (struct sweep_estimate){ 2, 1, 3 };
	t->t0_ns = t->plain_ns = 20;
	text = table(res);
	assert_non_null(strstr(text, "of 20ns an item (10 %)\n"));
	free(text);
	t->plain_ns = 8;
	text = table(res);
	assert_non_null(strstr(text, "of 8ns an item without the hooks' cost (25 %)\n"));
	free(text);
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_reason_is_told_once),
					    cmocka_unit_test(test_a_crowded_machine_is_named),
					    cmocka_unit_test(
						    test_a_share_is_of_the_item_without_hooks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
