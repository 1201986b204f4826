/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "src/base/value.h"

static void test_registers_are_cut_and_extended(void **state)
{
	static const struct {
		enum value_type type;
		uint64_t raw, value;
		const char *text;
	} rows[] = {
		{ VALUE_I64, UINT64_MAX, UINT64_MAX, "-1" },
		{ VALUE_I8, 0x1234567890abcdff, UINT64_MAX, "-1" },
		{ VALUE_I8, 0xffffffffffffff7f, 127, "127" },
		{ VALUE_I16, 0xabcd8000, (uint64_t)-32768, "-32768" },
		{ VALUE_I32, 0xabcd80000000, (uint64_t)INT32_MIN, "-2147483648" },
		{ VALUE_U8, UINT64_MAX, 255, "255" },
		{ VALUE_U16, UINT64_MAX, 65535, "65535" },
		{ VALUE_U32, UINT64_MAX, UINT32_MAX, "4294967295" },
		{ VALUE_U64, UINT64_MAX, UINT64_MAX, "18446744073709551615" },
		{ VALUE_PTR, 0x7fff12345678, 0x7fff12345678, "0x7fff12345678" },
		{ VALUE_BOOL, 0xffffff00, 0, "false" },
		{ VALUE_BOOL, 0xab01, 1, "true" },
	};
	char text[VALUE_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(value_extend(rows[i].type, rows[i].raw) == rows[i].value);
		assert_string_equal(value_text(rows[i].type, rows[i].value, text, sizeof(text)),
				    rows[i].text);
	}
}

static void test_types_by_name(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < VALUE_TYPES; i++) {
		const char *name = value_type_name((enum value_type)i);

		assert_int_equal(value_type_find(name, strlen(name)), i);
		assert_int_equal(value_type_find(name, strlen(name) - 1), VALUE_TYPES);
	}
	assert_int_equal(value_type_find("", 0), VALUE_TYPES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers_are_cut_and_extended),
		cmocka_unit_test(test_types_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
