/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "src/spec/env.h"

/* The environment: name, value, name, value, NULL. */
static const char *const *vars;

static char *get(const char *name)
{
	for (const char *const *v = vars; *v; v += 2)
		if (!strcmp(v[0], name))
			return (char *)v[1];
	return NULL;
}

static void test_nothing_is_asked_for_without_a_file(void **state)
{
	static const char *const unset[] = { "SPEED_BUMP_DELAY_NS", "rubbish", NULL };
	static const char *const empty[] = { "SPEED_BUMP_TARGETS", "", "SPEED_BUMP_DELAY_NS", "x",
					     NULL };
	struct sb_err err = { 0 };
	struct spec_env env;

	(void)state;
	vars = unset;
	assert_int_equal(spec_env_read(get, &env, &err), 0);
	assert_null(env.path);
	vars = empty;
	assert_int_equal(spec_env_read(get, &env, &err), 0);
	assert_null(env.path);
}

static void test_numbers_have_the_defaults_and_units_of_the_reference(void **state)
{
	static const char *const plain[] = { "SPEED_BUMP_TARGETS", "t", NULL };
	static const char *const all[] = { "SPEED_BUMP_TARGETS",
					   "t",
					   "SPEED_BUMP_DELAY_NS",
					   " 10_000\n",
					   "SPEED_BUMP_FREQUENCY",
					   "7",
					   "SPEED_BUMP_START_MS",
					   "5000",
					   "SPEED_BUMP_DURATION_MS",
					   "30000",
					   NULL };
	struct sb_err err = { 0 };
	struct spec_env env;

	(void)state;
	vars = plain;
	assert_int_equal(spec_env_read(get, &env, &err), 0);
	assert_string_equal(env.path, "t");
	assert_int_equal(env.delay_ns, 1000);
	assert_int_equal(env.every, 1);
	assert_int_equal(env.start_ns, 0);
	assert_int_equal(env.for_ns, 0);
	vars = all;
	assert_int_equal(spec_env_read(get, &env, &err), 0);
	assert_int_equal(env.delay_ns, 10000);
	assert_int_equal(env.every, 7);
	assert_int_equal(env.start_ns, 5000000000);
	assert_int_equal(env.for_ns, 30000000000);
}

static void test_bad_numbers_are_named(void **state)
{
	static const char *const rows[][2] = {
		{ "SPEED_BUMP_DELAY_NS", "5us" },
		{ "SPEED_BUMP_DELAY_NS", "-1" },
		{ "SPEED_BUMP_DELAY_NS", "10000000001" },
		{ "SPEED_BUMP_DELAY_NS", "1 2" },
		{ "SPEED_BUMP_DELAY_NS", "_1" },
		{ "SPEED_BUMP_DELAY_NS", "1_" },
		{ "SPEED_BUMP_DELAY_NS", " " },
		{ "SPEED_BUMP_FREQUENCY", "0" },
		{ "SPEED_BUMP_FREQUENCY", "1.5" },
		{ "SPEED_BUMP_START_MS", "soon" },
		{ "SPEED_BUMP_DURATION_MS", "99999999999999999999" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *list[] = { "SPEED_BUMP_TARGETS", "t", rows[i][0], rows[i][1], NULL };
		struct sb_err err = { 0 };
		struct spec_env env;

		vars = list;
		assert_int_equal(spec_env_read(get, &env, &err), -SB_EUSAGE);
		assert_non_null(strstr(err.what, rows[i][0]));
	}
}

static void test_patterns_are_python_targets(void **state)
{
	static const char text[] = "\xef\xbb\xbf# all of a class\n\n"
				   "  transformers.modeling_llama:LlamaAttention.*  \r\n"
				   "\t# again\n"
				   "a : b\n"
				   "a:b  # why: because\n"
				   "pkg:f.<locals>.g";
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };

	(void)state;
	assert_int_equal(spec_parse_patterns(text, sizeof(text) - 1, "t", &list, &err), 0);
	assert_int_equal(list.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(list.spec[i].kind, SPEC_PYTHON);
		assert_true(list.spec[i].delay_ns == SPEC_DELAY_UNSET);
		assert_true(list.spec[i].rest);
	}
	assert_string_equal(list.spec[0].module, "transformers.modeling_llama");
	assert_string_equal(list.spec[0].symbol, "LlamaAttention.*");
	assert_string_equal(list.spec[1].text, "py:a:b");
	assert_string_equal(list.spec[2].symbol, "f.<locals>.g");
	spec_list_free(&list);
}

static void test_bad_lines_are_numbered_and_append_nothing(void **state)
{
	static const char *const lines[] = {
		"nope", ":f", "m:", " : ", "py:m:f", "m:f:g", "m:f\1:"
	};
	struct spec_list list = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char text[64];
		struct sb_err err = { 0 };

		snprintf(text, sizeof(text), "good:one\n\n%s\n", lines[i]);
		assert_int_equal(spec_parse_patterns(text, strlen(text), "t", &list, &err),
				 -SB_ESPEC);
		assert_non_null(strstr(err.what, "t:3: "));
		assert_int_equal(list.count, 0);
	}
	assert_int_equal(spec_parse_patterns("a\0b:c", 5, "t", &list, NULL), -SB_ESPEC);
	assert_int_equal(spec_parse_patterns("# none\n", 7, "t", &list, NULL), 0);
	assert_int_equal(list.count, 0);
	spec_list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_asked_for_without_a_file),
		cmocka_unit_test(test_numbers_have_the_defaults_and_units_of_the_reference),
		cmocka_unit_test(test_bad_numbers_are_named),
		cmocka_unit_test(test_patterns_are_python_targets),
		cmocka_unit_test(test_bad_lines_are_numbered_and_append_nothing),
	};

	return cmocka_run_group_tests_name("spec-env", tests, NULL, NULL);
}
