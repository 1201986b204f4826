/* SPDX-License-Identifier: MIT */
/* The landing scan against branches that are known, and against a slow scan of everything. */
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <capstone/capstone.h>
#include "inject/arch/x86_64/x86.h"
#include "inject/landing.h"

enum { TEXT_SIZE = 0x4000, FUNC_SIZE = 0x400 };

#define BASE 0x401000ULL

static uint8_t text[TEXT_SIZE];

/* Functions of FUNC_SIZE bytes, side by side; the last quarter belongs to none. */
static bool fixed_bounds(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + TEXT_SIZE * 3 / 4)
		return false;
	*start = BASE + (addr - BASE) / FUNC_SIZE * FUNC_SIZE;
	*end = *start + FUNC_SIZE;
	return true;
}

static int clear(void **state)
{
	(void)state;
	memset(text, 0x90, sizeof(text));
	return 0;
}

static void put_rel32(uint64_t at, const void *opcode, size_t len, uint64_t to)
{
	int32_t rel = (int32_t)(to - (at + len + 4));

	memcpy(text + at, opcode, len);
	memcpy(text + at + len, &rel, 4);
}

static void put_rel8(uint64_t at, uint8_t opcode, uint64_t to)
{
	text[at] = opcode;
	text[at + 1] = (uint8_t)(to - (at + 2));
}

static size_t scan(uint64_t at, unsigned int len, struct landing *out, size_t cap)
{
	struct landing_set *set = landing_new();
	size_t n;

	assert_non_null(set);
	assert_int_equal(landing_add_window(set, BASE + at, len), 0);
	assert_int_equal(landing_scan(set, text, BASE, sizeof(text), fixed_bounds, NULL), 0);
	n = landing_query(set, BASE + at, len, out, cap);
	landing_free(set);
	return n;
}

static void branches_of_all_kinds_are_found(void **state)
{
	struct landing l[16];

	(void)state;
	put_rel32(0x10, "\xe8", 1, 0x2403);	 /* call */
	put_rel32(0x400, "\xe9", 1, 0x2403);	 /* jmp */
	put_rel32(0x900, "\x0f\x85", 2, 0x2403); /* jne */
	put_rel32(0xd00, "\xc7\xf8", 2, 0x2403); /* xbegin */
	put_rel8(0x2450, 0xeb, 0x2403);		 /* jmp */
	put_rel8(0x2460, 0x7f, 0x2403);		 /* jg */
	put_rel8(0x2470, 0xe2, 0x2403);		 /* loop */
	put_rel8(0x2481, 0xe3, 0x2403);		 /* jrcxz, at its farthest */
	put_rel8(0x2386, 0x74, 0x2403);		 /* je, forward */
	assert_int_equal(scan(0x2400, 5, l, 16), 9);
	for (int i = 0; i < 9; i++) {
		assert_true(l[i].confirmed);
		assert_int_equal(l[i].to, BASE + 0x2403);
		assert_int_equal(l[i].call, l[i].from == BASE + 0x10);
	}
	assert_int_equal(l[2].from, BASE + 0x900);
	assert_int_equal(l[2].field, BASE + 0x902);
	assert_int_equal(l[2].field_len, 4);
	assert_int_equal(l[4].from, BASE + 0x2386);
	assert_int_equal(l[4].field_len, 1);
}

static void branches_at_the_text_s_edges_are_found(void **state)
{
	struct landing l[4];

	(void)state;
	put_rel32(0, "\xe9", 1, 0x802);
	put_rel32(TEXT_SIZE - 5, "\xe9", 1, 0x802);
	assert_int_equal(scan(0x800, 5, l, 4), 2);
	assert_int_equal(l[0].from, BASE);
	assert_int_equal(l[1].from, BASE + TEXT_SIZE - 5);
	clear(NULL);
	put_rel8(0, 0xeb, 0x22);
	assert_int_equal(scan(0x20, 5, l, 4), 1);
	clear(NULL);
	put_rel8(TEXT_SIZE - 2, 0xeb, TEXT_SIZE - 0x40);
	assert_int_equal(scan(TEXT_SIZE - 0x44, 8, l, 4), 1);
}

static void immediates_that_look_like_branches_are_not(void **state)
{
	struct landing l[4];

	(void)state;
	put_rel32(0x100, "\x48\xb8\x90\xe9", 4, 0x1003); /* mov $imm64 */
	put_rel32(0x120, "\x81\xe8", 2, 0x1003);	 /* sub $imm32, %eax */
	put_rel8(0x1020, 0xeb, 0x1003);
	text[0x101f] = 0xb0; /* mov $0xeb, %al; then a byte */
	text[0x1021] = 0x90;
	assert_int_equal(scan(0x1000, 5, l, 4), 0);
}

static void unknown_code_counts_unconfirmed(void **state)
{
	struct landing l[4];

	(void)state;
	put_rel32(0x3800, "\x48\xb8\x90\xe9", 4, 0x1003);
	assert_int_equal(scan(0x1000, 5, l, 4), 1);
	assert_false(l[0].confirmed);
	/* and so does a function that cannot be decoded up to there */
	clear(NULL);
	text[0x100] = 0x06;
	put_rel32(0x200, "\xe9", 1, 0x1003);
	assert_int_equal(scan(0x1000, 5, l, 4), 1);
	assert_false(l[0].confirmed);
	/* or that holds what no program holds: a sign of data */
	text[0x100] = 0x6d;
	assert_int_equal(scan(0x1000, 5, l, 4), 1);
	assert_false(l[0].confirmed);
}

static void ordinary_calls_are_no_landings(void **state)
{
	struct landing l[4];

	(void)state;
	put_rel32(0x100, "\xe8", 1, 0x1000);  /* call from elsewhere */
	put_rel32(0x140, "\xe9", 1, 0x1000);  /* tail call from elsewhere */
	put_rel32(0x1100, "\xe8", 1, 0x1000); /* recursion */
	assert_int_equal(scan(0x1000, 5, l, 4), 0);
	put_rel32(0x1200, "\xe9", 1, 0x1000); /* a loop */
	assert_int_equal(scan(0x1000, 5, l, 4), 1);
	assert_int_equal(l[0].from, BASE + 0x1200);
	assert_false(l[0].call);
}

static void overlapping_windows_lose_nothing(void **state)
{
	struct landing_set *set = landing_new();
	struct landing l[4];

	(void)state;
	put_rel32(0x100, "\xe8", 1, 0x1000);
	assert_int_equal(landing_add_window(set, BASE + 0x1000, 5), 0);
	assert_int_equal(landing_add_window(set, BASE + 0xffd, 5), 0);
	assert_int_equal(landing_add_window(set, BASE + 0x1000, 5), 0);
	assert_int_equal(landing_add_window(set, BASE + 0x2000, 0), 0);
	assert_int_equal(landing_scan(set, text, BASE, sizeof(text), fixed_bounds, NULL), 0);
	assert_int_equal(landing_query(set, BASE + 0xffd, 5, l, 4), 1);
	assert_true(l[0].call);
	assert_int_equal(landing_query(set, BASE + 0x1001, 4, l, 4), 0);
	assert_int_equal(landing_query(set, BASE + 0x1000, 0, l, 4), 0);
	landing_free(set);
	landing_free(NULL);
}

/* Every branch that one linear disassembly finds, as the scan must. */
static size_t slow_count(uint64_t at, unsigned int len)
{
	size_t n = 0;

	for (uint64_t off = 0; off < TEXT_SIZE * 3 / 4;) {
		struct x86_decoded insn;

		if (x86_classify(text + off, TEXT_SIZE - off, BASE + off, &insn) != PLAN_OK)
			fail();
		if (insn.kind >= X86_JMP && insn.kind <= X86_CALL)
			n += insn.target - (BASE + at) < len;
		off += insn.form.len;
	}
	return n;
}

static void random_text_is_scanned_completely(void **state)
{
	struct landing l[256];

	(void)state;
	srand(7);
	for (int round = 0; round < 200; round++) {
		clear(NULL);
		for (uint64_t at = 0; at + 16 < TEXT_SIZE * 3 / 4; at += 6 + (uint64_t)rand() % 9) {
			/* within its function, so that each function can be decoded */
			if (at / FUNC_SIZE != (at + 6) / FUNC_SIZE)
				continue;
			if (rand() % 2)
				put_rel32(at, rand() % 2 ? "\xe8" : "\xe9", 1,
					  0x1400 + (uint64_t)rand() % 64);
			else
				put_rel8(at, 0x70 + (uint8_t)(rand() % 16), (uint64_t)rand());
		}
		assert_int_equal(scan(0x1403, 20, l, 256), slow_count(0x1403, 20));
	}
}

static unsigned long long compared;

/* The two decoders must take the same steps, through everything that is there. */
static void compare_decoders(const uint8_t *p, size_t len)
{
	const uint8_t *at = p;
	uint64_t addr = 0;
	cs_insn *insn;
	csh handle;

	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
	insn = cs_malloc(handle);
	while (len > 15) {
		struct x86_form form;
		const uint8_t *here = at;
		unsigned int mine = x86_length(here, len, &form);

		if (!cs_disasm_iter(handle, &at, &len, &addr, insn)) {
			at = here + 1, len--;
			continue;
		}
		/* what this decoder does not know counts as lost, which is safe */
		if (mine && mine != insn->size)
			fail_msg("%02x %02x %02x %02x: %u, capstone %u %s", here[0], here[1],
				 here[2], here[3], mine, insn->size, insn->mnemonic);
		compared++;
	}
	cs_free(insn, 1);
	cs_close(&handle);
}

static int each_text(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size, (void)data;
	if (!strstr(info->dlpi_name, "libc.so") && !strstr(info->dlpi_name, "libcapstone"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
			compare_decoders((void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
					 info->dlpi_phdr[i].p_memsz);
	return 0;
}

static void decoders_agree_on_real_libraries(void **state)
{
	(void)state;
	dl_iterate_phdr(each_text, NULL);
	assert_true(compared > 100000);
}

#define TEST(F) cmocka_unit_test_setup(F, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(branches_of_all_kinds_are_found),
		TEST(branches_at_the_text_s_edges_are_found),
		TEST(immediates_that_look_like_branches_are_not),
		TEST(unknown_code_counts_unconfirmed),
		TEST(ordinary_calls_are_no_landings),
		TEST(overlapping_windows_lose_nothing),
		TEST(random_text_is_scanned_completely),
		TEST(decoders_agree_on_real_libraries),
	};

	return cmocka_run_group_tests_name("landing", tests, NULL, NULL);
}
