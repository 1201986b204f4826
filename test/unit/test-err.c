/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"

static void test_first_failure_wins(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, SB_ENOSYMBOL, "no '%s'", "x"), -SB_ENOSYMBOL);
	assert_int_equal(err_set(&err, SB_EFILE, "later"), -SB_EFILE);
	assert_int_equal(err.code, SB_ENOSYMBOL);
	assert_string_equal(err.what, "no 'x'");
	assert_int_equal(err_set(NULL, SB_EFILE, "no listener"), -SB_EFILE);
}

static void test_sys_appends_errno(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	errno = ENOENT;
	assert_int_equal(err_sys(&err, SB_EFILE, "/x"), -SB_EFILE);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.what, "/x: No such file or directory");
	assert_int_equal(errno, ENOENT);
}

static void test_prefix_and_overlong_text(void **state)
{
	struct sb_err err = { 0 };
	char longer[2000];

	(void)state;
	err_set(&err, SB_EFILE, "cause");
	err_prefix(&err, "target '%s'", "a:b");
	assert_string_equal(err.what, "target 'a:b': cause");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	err_prefix(&err, "%s", longer);
	assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
	err_hint(&err, "%s", longer);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

static void test_text_is_one_line(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	err_set(&err, SB_EFILE, "a\nb\033[31m");
	assert_string_equal(err.what, "a b [31m");
	err = (struct sb_err){ 0 };
	err_set(&err, SB_EFILE,
		"a\xc2\x9b"
		"3m b\x9b"
		"3m \xc3\x9b \xe2\x82\x9b");
	assert_string_equal(err.what, "a  3m b 3m \xc3\x9b \xe2\x82\x9b");
}

static void test_remedy_prefers_the_recorded_hint(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	assert_string_equal(err_remedy(&err), "");
	err_set(&err, SB_EUSAGE, "x");
	assert_string_equal(err_remedy(&err), "see sbinject --help");
	err_hint(&err, "try y");
	assert_string_equal(err_remedy(&err), "try y");
}

static void test_exit_statuses_are_the_documented_ones(void **state)
{
	static const struct {
		enum sb_code code;
		int status;
	} want[] = {
		{ SB_OK, 0 },	      { SB_EUSAGE, 2 },	  { SB_ESPEC, 2 },	{ SB_ENOMODULE, 3 },
		{ SB_ENOSYMBOL, 3 },  { SB_ENOTFUNC, 3 }, { SB_EAMBIGUOUS, 3 }, { SB_EREFUSED, 3 },
		{ SB_EPERM, 4 },      { SB_ETRACED, 4 },  { SB_ECONFINED, 4 },	{ SB_ENOPROC, 5 },
		{ SB_EBADPROC, 5 },   { SB_EFILE, 1 },	  { SB_ENOMEM, 1 },	{ SB_EINTERNAL, 1 },
		{ SB_CODE_COUNT, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(err_exit_status(want[i].code), want[i].status);
	for (int c = 0; c < SB_CODE_COUNT; c++)
		assert_true(strlen(err_name(c)) > 0);
}

static char last_line[256];
static int line_count;

static void keep_line(enum log_level level, const char *line, void *ctx)
{
	(void)level;
	(void)ctx;
	strncpy(last_line, line, sizeof(last_line) - 1);
	line_count++;
}

static void test_log_obeys_level_and_sink(void **state)
{
	(void)state;
	log_note("no listener yet");
	log_set_sink(keep_line, NULL);
	log_set_level(LOG_WARN);
	log_note("hidden");
	assert_int_equal(line_count, 0);
	log_warn("%d\n%s", 7, "x");
	assert_string_equal(last_line, "7\\nx");
	assert_int_equal(log_get_level(), LOG_WARN);
	log_set_sink(NULL, NULL);
	log_error("dropped");
	assert_int_equal(line_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_failure_wins),
		cmocka_unit_test(test_sys_appends_errno),
		cmocka_unit_test(test_prefix_and_overlong_text),
		cmocka_unit_test(test_text_is_one_line),
		cmocka_unit_test(test_remedy_prefers_the_recorded_hint),
		cmocka_unit_test(test_exit_statuses_are_the_documented_ones),
		cmocka_unit_test(test_log_obeys_level_and_sink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
