/* SPDX-License-Identifier: MIT */
/* First instructions: which a uprobe may not be put on, and which are cheap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "inject/arch/arch.h"

#define SAFE(...) \
	arch_probe_safe((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* Each was seen to run wrongly under a probe, or has the opcode of such a one. */
static void test_misread(void **state)
{
	(void)state;
	assert_false(SAFE(0x62, 0xe2, 0x7d, 0x28, 0x7a, 0xce)); /* vpbroadcastb %esi, %ymm17 */
	assert_false(SAFE(0xc5, 0xf8, 0x57, 0xc0));		/* vxorps: as push %rdi */
	assert_false(SAFE(0xc5, 0xf8, 0x77));			/* vzeroupper: as ja */
	assert_false(SAFE(0xc4, 0xe2, 0x7d, 0x78, 0xc6));	/* vpbroadcastb: as js */
	assert_false(SAFE(0xc5, 0xf9, 0xe8, 0xc1));		/* vpsubsb: as call */
}

static void test_right(void **state)
{
	(void)state;
	assert_true(SAFE(0x55));			       /* push %rbp */
	assert_true(SAFE(0x7a, 0x10));			       /* jp */
	assert_true(SAFE(0xf3, 0x0f, 0x1e, 0xfa));	       /* endbr64 */
	assert_true(SAFE(0xc5, 0xf9, 0x6e, 0xc6));	       /* vmovd */
	assert_true(SAFE(0xc5, 0xf9, 0xef, 0xc0));	       /* vpxor */
	assert_true(SAFE(0x62, 0xa1, 0xfd, 0x00, 0xef, 0xc0)); /* vpxorq */
	assert_true(SAFE(0xc5));			       /* cut */
	assert_true(arch_probe_safe(NULL, 0));
}

/* A sample stands for its kind. */
static void test_samples(void **state)
{
	size_t len;

	(void)state;
	for (unsigned int kind = 0; kind < ARCH_PROBE_KINDS; kind++) {
		const uint8_t *code = arch_probe_sample(kind, &len);

		assert_int_equal(arch_probe_kind(code, len), kind);
		assert_true(arch_probe_safe(code, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_misread),
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
