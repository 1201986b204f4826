/* SPDX-License-Identifier: MIT */
/* What `find` proposes to do next: the command that its sweep's document asks for, for a shell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "src/cli/find-next.h"

static char *sweep_of[] = { "sweep",	  ":a<int, b>", "every=4", ":c'd", ":e",
			    "--progress", ":a<int, b>", "--time",  "10s",  "--follow",
			    "-p",	  "7",		NULL };

static struct out_find out;

static const char *response; /* that find knows of */

static void proposed(const char *document, bool is_target)
{
	struct find_next_about about = { document, sweep_of, 10, is_target, response };

	find_next_free(&out);
	find_next(&about, &out);
}

#define DOC(needed, early, a, c, e)                                                           \
	"{\"time_needed_s\": " needed ", \"ended_early\": " early ", \"targets\": [" a ", " c \
	", " e "]}"
#define TARGET_OF(verdict, lo, hi, remedy) \
	"{\"verdict\": \"" verdict "\", \"kappa_ci\": [" lo ", " hi "], \"remedy\": " remedy "}"
#define TARGET(verdict, lo, hi) TARGET_OF(verdict, lo, hi, "null")
#define FIRM			TARGET("CRITICAL", "0.95", "1.05")
#define HIDDEN			TARGET("HIDDEN", "-0.05", "0.05")
#define INVALID			TARGET("INVALID", "null", "null")
#define OPEN			TARGET("INCONCLUSIVE", "-0.3", "0.4")
#define OPEN_UNTIL(option, value, longer)        \
	TARGET_OF("INCONCLUSIVE", "-0.3", "0.4", \
		  "{\"option\": \"" option "\", \"value\": " value ", \"longer\": " longer "}")
#define REST " --progress ':a<int, b>' --time "

static void test_nothing_is_left_to_do(void **state)
{
	(void)state;
	proposed(DOC("null", "false", FIRM, HIDDEN, INVALID), true);
	assert_int_equal(out.n_next, 0);
	proposed(NULL, true);
	assert_int_equal(out.n_next, 0);
	proposed("no document", true);
	assert_int_equal(out.n_next, 0);
}

static void test_more_time(void **state)
{
	(void)state;
	proposed(DOC("57.2", "false", OPEN, FIRM, HIDDEN), true);
	assert_int_equal(out.n_next, 1);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep ':a<int, b>' every=4" REST "58s --follow -p 7");
	/* A firm verdict whose interval is wide: 0.4 to 0.2 takes four times as long. */
	proposed(DOC("null", "false", HIDDEN, TARGET("CRITICAL", "0.6", "1.4"), HIDDEN), true);
	assert_int_equal(out.n_next, 1);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep ':c'\\''d'" REST "40s --follow -p 7");
	/* How long is enough is not known, or less than what was not enough. */
	proposed(DOC("null", "false", HIDDEN, FIRM, OPEN), true);
	assert_string_equal(out.next[0].command, "sbinject sweep :e" REST "20s --follow -p 7");
	proposed(DOC("4.0", "false", HIDDEN, OPEN, OPEN), true);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep ':c'\\''d' :e" REST "20s --follow -p 7");
}

static void test_interrupted(void **state)
{
	(void)state;
	proposed(DOC("null", "true", FIRM, OPEN, HIDDEN), true);
	assert_int_equal(out.n_next, 1);
	assert_string_equal(out.next[0].why, FIND_NEXT_WHOLE);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep ':c'\\''d'" REST "10s --follow -p 7");
	assert_true(find_ended_early(DOC("null", "true", FIRM, FIRM, FIRM)));
	assert_false(find_ended_early(DOC("null", "false", FIRM, FIRM, FIRM)));
	assert_false(find_ended_early(NULL));
}

static void test_options_that_decide(void **state)
{
	(void)state;
	proposed(DOC("null", "false", OPEN_UNTIL("every", "\"16\"", "false"),
		     OPEN_UNTIL("--doses", "\"2us,4us,8us\"", "false"),
		     OPEN_UNTIL("--guard", "\"3s\"", "true")),
		 true);
	assert_int_equal(out.n_next, 3);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep ':a<int, b>' every=16" REST "10s --follow -p 7");
	assert_string_equal(out.next[1].command,
			    "sbinject sweep ':c'\\''d' --doses 2us,4us,8us" REST
			    "10s --follow -p 7");
	assert_string_equal(out.next[2].command,
			    "sbinject sweep :e --guard 3s" REST "20s --follow -p 7");
}

static void test_what_only_the_user_knows(void **state)
{
	const char *load = DOC("null", "false", HIDDEN, FIRM,
			       OPEN_UNTIL("--self-check", "null", "true"));

	(void)state;
	proposed(DOC("null", "false", FIRM, FIRM, OPEN_UNTIL("--lane", "null", "false")), true);
	assert_int_equal(out.n_next, 0);
	proposed(load, false);
	assert_int_equal(out.n_next, 0);
	proposed(load, true);
	assert_int_equal(out.n_next, 1);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep :e --self-check" REST "20s --follow -p 7");
	response = "prom:http://h/m#lat_seconds";
	proposed(load, false);
	response = NULL;
	assert_int_equal(out.n_next, 1);
	assert_string_equal(out.next[0].command,
			    "sbinject sweep :e --response prom:http://h/m#lat_seconds" REST
			    "20s --follow -p 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_left_to_do),
		cmocka_unit_test(test_more_time),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_options_that_decide),
		cmocka_unit_test(test_what_only_the_user_knows),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	find_next_free(&out);
	return failed;
}
