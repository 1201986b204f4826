/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/text.h"
#include "src/out/out.h"
#include "src/spec/spec.h"

static void test_delays(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {
		{ "0", 0 },
		{ "0ns", 0 },
		{ "1ns", 1 },
		{ "5us", 5000 },
		{ "2.5us", 2500 },
		{ "5.000us", 5000 },
		{ "\xc2\xb5s", 0 },
		{ "5\xc2\xb5s", 5000 },
		{ "5\xce\xbcs", 5000 },
		{ ".5ms", 500000 },
		{ "1.2ms", 1200000 },
		{ "10s", 10000000000 },
		{ "0.000000001s", 1 },
		{ "007us", 7000 },
		{ "1.500000000000000000000000us", 1500 },
		{ "9999999999ns", 9999999999 },
		{ "0.0", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t ns = 99;

		if (rows[i].text[0] == '\xc2') /* a unit alone */
			assert_int_equal(spec_delay(rows[i].text, &ns, NULL), -SB_ESPEC);
		else
			assert_int_equal(spec_delay(rows[i].text, &ns, NULL), 0);
		assert_int_equal(ns, rows[i].text[0] == '\xc2' ? 99 : rows[i].ns);
	}
}

static void test_what_is_no_delay(void **state)
{
	static const char *const rows[] = {
		"",
		" ",
		"5",
		"5 us",
		" 5us",
		"5us ",
		"5US",
		"5usec",
		"5m",
		"1h",
		"-5us",
		"+5us",
		"-0",
		"nan",
		"inf",
		"0x5",
		"0x5us",
		"1e3ns",
		"1e-6s",
		"2.5ns",
		"0.1ns",
		"5.us",
		".us",
		".",
		"1.2.3us",
		"1,5us",
		"10.000000001s",
		"10001ms",
		"11s",
		"99999999999999999999us",
		"18446744073709551617ns",
		"0.00000000000000000000001s",
		"5\xb5s",
		"5\xce\xbc",
		"1_000us",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sb_err err = { 0 };
		uint64_t ns = 99;

		int ret = spec_delay(rows[i], &ns, &err);

		assert_int_equal(ret, strstr(err.what, "is above 10s") ? -SB_ERANGE : -SB_ESPEC);
		assert_int_equal(ns, 99);
		assert_non_null(strstr(err.what, "delay '"));
		assert_non_null(strstr(err_remedy(&err), "5us"));
	}
}

static void test_durations(void **state)
{
	uint64_t ns;

	(void)state;
	assert_int_equal(spec_duration("30s", &ns, NULL), 0);
	assert_int_equal(ns, 30000000000);
	assert_int_equal(spec_duration("1.5h", &ns, NULL), 0);
	assert_int_equal(ns, 5400000000000);
	assert_int_equal(spec_duration("0.0000000000025h", &ns, NULL), 0);
	assert_int_equal(ns, 9);
	assert_int_equal(spec_duration("5m", &ns, NULL), 0);
	assert_int_equal(ns, 300000000000);
	assert_int_equal(spec_duration("0", &ns, NULL), 0);
	assert_int_equal(ns, 0);
	assert_int_equal(spec_duration("876601h", &ns, NULL), -SB_ERANGE);
	assert_int_equal(spec_duration("99999999999999999h", &ns, NULL), -SB_ERANGE);
	assert_int_equal(spec_duration("30", &ns, NULL), -SB_ESPEC);
}

static void test_format_is_the_shortest_that_reads_back(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ 1, "1ns" },
		{ 999, "999ns" },
		{ 1000, "1us" },
		{ 2500, "2.5us" },
		{ 1001, "1001ns" },
		{ 100000, "100us" },
		{ 1200000, "1.2ms" },
		{ 10000000000, "10s" },
		{ 1500000000, "1.5s" },
		{ 90000000000, "90s" },
		{ 1050000, "1.05ms" },
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(spec_format_ns(rows[i].ns, buf, sizeof(buf)), rows[i].text);
	for (uint64_t ns = 1; ns <= SPEC_DELAY_MAX_NS; ns += ns / 7 + 1) {
		uint64_t again;

		assert_int_equal(spec_delay(spec_format_ns(ns, buf, sizeof(buf)), &again, NULL), 0);
		assert_true(ns == again);
	}
	assert_int_equal(strlen(spec_format_ns(UINT64_MAX, buf, sizeof(buf))), 22);
}

static void test_out_time(void **state)
{
	static const struct {
		double ns;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ 1, "1.00ns" },
		{ 12.34, "12.3ns" },
		{ 250, "250ns" },
		{ 999.4, "999ns" },
		{ 999.6, "1.00us" },
		{ 5000, "5.00us" },
		{ 9996, "10.0us" },
		{ 12345, "12.3us" },
		{ 123456, "123us" },
		{ 999499, "999us" },
		{ 999600, "1.000ms" },
		{ 600.2e6, "600.2ms" },
		{ 1234567, "1.235ms" },
		{ 12345678, "12.35ms" },
		{ 999.96e6, "1.000s" },
		{ 1.5e9, "1.500s" },
		{ 9999.96e9, "10000s" },
		{ 123456.7e9, "123457s" },
		{ -5000, "-5.00us" },
		{ NAN, "-" },
		{ INFINITY, "-" },
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(out_time(rows[i].ns, buf, sizeof(buf)), rows[i].text);
}

static void test_out_rate(void **state)
{
	static const struct {
		double rate;
		const char *text;
	} rows[] = {
		{ 0, "0" },	      { 0.5, "0.50" },	      { 9.996, "10.0" },
		{ 12.34, "12.3" },    { 99.96, "100" },	      { 999.6, "1000" },
		{ 40011.3, "40011" }, { 1234567, "1234567" }, { NAN, "-" },
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(out_rate(rows[i].rate, buf, sizeof(buf)), rows[i].text);
}

static void test_text_is_safe_and_whole(void **state)
{
	static const struct {
		const char *raw, *shown;
	} rows[] = {
		{ "plain", "plain" },
		{ "a\nb\tc\r", "a\\nb\\tc\\r" },
		{ "\x1b[2J", "\\x1b[2J" },
		{ "\xff\xc3", "\\xff\\xc3" },
		{ "\xc3\xa9", "\xc3\xa9" },
		{ "\xc0\x80", "\\xc0\\x80" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "\xc2\x9b", "\\u009b" },
		{ "\xe2\x80\xae", "\\u202e" },
		{ "\x7f", "\\x7f" },
		{ NULL, "-" },
	};
	char small[8];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *shown = text_show(rows[i].raw);

		assert_string_equal(shown, rows[i].shown);
		free(shown);
	}
	assert_string_equal(text_quote("1234567", small, sizeof(small)), "1234567");
	assert_string_equal(text_quote("12345678", small, sizeof(small)), "1234...");
	assert_string_equal(text_quote("123\xc3\xa9xyz", small, sizeof(small)), "123...");
	assert_int_equal(text_width("a\xc3\xa9\xe6\x97\xa5"), 4);
	assert_int_equal(text_clip("a\xc3\xa9\xe6\x97\xa5", 3), 3);
	assert_int_equal(text_clip("a\xc3\xa9\xe6\x97\xa5", 4), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_what_is_no_delay),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_format_is_the_shortest_that_reads_back),
		cmocka_unit_test(test_out_time),
		cmocka_unit_test(test_out_rate),
		cmocka_unit_test(test_text_is_safe_and_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
