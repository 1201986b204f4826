/* SPDX-License-Identifier: MIT */
/* Go's table of functions: what a whole one says, and damaged ones, whatever they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "elf/gotab.h"

enum { N = 3, NAMES = 0x60, FUNCS = 0xa0, SIZE = 0x180, TEXT = 0x1000, ROUNDS = 200000 };

static uint8_t table[SIZE], code[0x100];

static void put32(size_t at, uint32_t v)
{
	memcpy(table + at, &v, sizeof(v));
}

static void put64(size_t at, uint64_t v)
{
	memcpy(table + at, &v, sizeof(v));
}

/* As Go 1.18 writes it (description of 40 bytes), or 1.20 (44). */
static void build(uint32_t magic, uint64_t text)
{
	static const char names[] = "main.a\0main.b\0runtime.c";
	size_t desc = magic == 0xfffffff1 ? 44 : 40, flag = desc - 3;

	memset(table, 0, sizeof(table));
	put32(0, magic);
	table[6] = 1;
	table[7] = 8;
	put64(8, N);
	put64(24, text);
	put64(32, NAMES);
	put64(40, NAMES + sizeof(names));
	put64(64, FUNCS);
	memcpy(table + NAMES, names, sizeof(names));
	for (uint32_t i = 0; i < N; i++) {
		size_t at = 8 * (N + 1) + i * desc;

		put32(FUNCS + 8 * i, i * 0x40);
		put32(FUNCS + 8 * i + 4, (uint32_t)at);
		put32(FUNCS + at + 4, i * 7);
		table[FUNCS + at + flag] = i == 2 ? 4 : 0;
	}
}

static struct view_range whole(void)
{
	return (struct view_range){ table, sizeof(table) };
}

static const uint8_t *bytes(const void *ctx, uint64_t vaddr, size_t *avail)
{
	(void)ctx;
	if (vaddr < TEXT || vaddr - TEXT >= sizeof(code))
		return NULL;
	*avail = sizeof(code) - (vaddr - TEXT);
	return code + (vaddr - TEXT);
}

static void check(struct gotab *t)
{
	struct symtab tab = { 0 };
	Elf64_Sym sym;

	assert_int_equal(t->count, N);
	assert_non_null(gotab_at(t, TEXT + 0x40));
	assert_false(gotab_at(t, TEXT + 0x40)->assembly);
	assert_true(gotab_at(t, TEXT + 0x80)->assembly);
	assert_null(gotab_at(t, TEXT + 0x41));
	memset(code, 0x90, sizeof(code));
	memset(code + 0x78, 0xcc, 8);
	assert_true(gotab_symbols(t, &tab, bytes, NULL));
	symtab_get(&tab, 1, &sym);
	assert_string_equal(symtab_name(&tab, &sym), "main.b");
	assert_int_equal(sym.st_value, TEXT + 0x40);
	assert_int_equal(sym.st_size, 0x38);
}

static void test_versions(void **state)
{
	static const uint32_t magic[] = { 0xfffffff0, 0xfffffff1 };
	struct gotab t;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		build(magic[i], TEXT);
		assert_true(gotab_read(&t, whole(), 0, 0, NULL));
		check(&t);
		gotab_free(&t);
	}
	build(0xfffffffa, TEXT);
	assert_false(gotab_read(&t, whole(), 0, 0, NULL));
	assert_int_equal(t.count, 0);
}

/* Of a program that may lie anywhere the text's address is filled in when it is loaded. */
static void test_text_from_section(void **state)
{
	struct gotab t;

	(void)state;
	build(0xfffffff1, 0);
	assert_true(gotab_read(&t, whole(), TEXT, TEXT + 0x40, NULL));
	check(&t);
	gotab_free(&t);
	assert_false(gotab_read(&t, whole(), TEXT, TEXT + 0x44, NULL));
}

static void test_damaged(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t *copy;
		struct symtab tab = { 0 };
		struct gotab t;
		size_t size;

		build(i % 2 ? 0xfffffff0 : 0xfffffff1, TEXT);
		for (int k = 0; k < 3; k++) {
			seed = seed * 1103515245 + 12345;
			table[8 + (seed >> 8) % (SIZE - 8)] = (uint8_t)(seed >> 24);
		}
		size = i % 4 ? SIZE : (seed >> 4) % SIZE;
		copy = malloc(size + 1); /* a sanitizer sees what is beyond */
		memcpy(copy, table, size);
		if (gotab_read(&t, (struct view_range){ copy, size }, 0, 0, NULL)) {
			gotab_symbols(&t, &tab, bytes, NULL);
			for (uint32_t n = 0; n < tab.count; n++) {
				Elf64_Sym sym;

				symtab_get(&tab, n, &sym);
				assert_true(strlen(symtab_name(&tab, &sym)) < SIZE);
			}
			gotab_free(&t);
		}
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_text_from_section),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
