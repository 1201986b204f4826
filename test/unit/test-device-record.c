/* SPDX-License-Identifier: MIT */
/*
 * CUPTI's records: their fields at the places that each version has them at, and not a byte behind
 * what may be read, for any kind and any size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "device/agent/record.h"

enum { PAGE = 4096, MOST = 320 };

static uint8_t *guarded; /* the last byte that may be read is guarded[PAGE - 1] */

static void put32(uint8_t *r, size_t at, uint32_t v)
{
	memcpy(r + at, &v, sizeof(v));
}

static void put64(uint8_t *r, size_t at, uint64_t v)
{
	memcpy(r + at, &v, sizeof(v));
}

static void versions(void **state)
{
	static const uint32_t known[] = { 12, 13, 14, 15, 16, 17, 18, 19,     20,
					  21, 22, 23, 24, 26, 27, 28, 130000, 130001 };
	static const uint32_t unknown[] = { 0, 1, 11, 29, 100, 129999, 130002, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_true(record_version_known(known[i]));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_false(record_version_known(unknown[i]));
}

static void kernel(void **state)
{
	uint8_t r[RECORD_KERNEL_BYTES] = { 0 };
	struct sb_device_event e;
	uint64_t name;

	(void)state;
	put32(r, 0, CUPTI_KIND_CONCURRENT_KERNEL);
	put64(r, 16, 1000);
	put64(r, 24, 1700);
	for (uint32_t i = 0; i < 3; i++) {
		put32(r, 40 + 4 * i, 10 + i);
		put32(r, 52 + 4 * i, 20 + i);
		put32(r, 64 + 4 * i, 30 + i);
	}
	put32(r, 76, 100);
	put32(r, 80, 28);
	put32(r, 92, 99);
	put64(r, 104, 0x7f00);
	assert_true(record_read(r, sizeof(r), &e, &name));
	assert_int_equal(e.kind, SB_DEVICE_KERNEL);
	assert_true(e.start == 1000 && e.end == 1700 && name == 0x7f00);
	assert_true(e.device == 10 && e.context == 11 && e.stream == 12 && e.correlation == 99);
	assert_true(e.grid[0] == 20 && e.grid[2] == 22 && e.block[0] == 30 && e.block[2] == 32);
	assert_int_equal(e.shared, 128);
	put64(r, 24, 999); /* it ends before it begins */
	assert_false(record_read(r, sizeof(r), &e, &name));
	put64(r, 16, 0); /* no time was measured */
	assert_false(record_read(r, sizeof(r), &e, &name));
}

static void sized(void **state)
{
	static const struct {
		uint32_t kind;
		size_t bytes, correlation;
		uint8_t event;
	} rows[] = { { CUPTI_KIND_COPY, RECORD_COPY_BYTES, 44, SB_DEVICE_COPY },
		     { CUPTI_KIND_PEER_COPY, RECORD_PEER_BYTES, 60, SB_DEVICE_COPY },
		     { CUPTI_KIND_MEMSET, RECORD_MEMSET_BYTES, 44, SB_DEVICE_MEMSET } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t r[64] = { 0 };
		struct sb_device_event e;
		uint64_t name;

		put32(r, 0, rows[i].kind);
		put32(r, 4, 8);
		put64(r, 8, 1ull << 40);
		put64(r, 16, 5);
		put64(r, 24, 5);
		put32(r, 32, 1);
		put32(r, 36, 2);
		put32(r, 40, 3);
		put32(r, rows[i].correlation, 77);
		assert_true(record_read(r, rows[i].bytes, &e, &name));
		assert_int_equal(e.kind, rows[i].event);
		assert_true(e.bytes == 1ull << 40 && e.device == 1 && e.context == 2);
		assert_true(e.stream == 3 && e.correlation == 77 && !name);
		assert_int_equal(e.kind == SB_DEVICE_COPY ? e.copy : e.value, 8);
		assert_false(record_read(r, rows[i].bytes - 1, &e, &name));
	}
}

/* Each size ends at a page that cannot be read. */
static void never_beyond(void **state)
{
	struct sb_device_event e;
	uint64_t name;
	size_t read = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < 200000; i++) {
		size_t room = (size_t)rand() % MOST;
		uint8_t *r = guarded + PAGE - room;

		for (size_t k = 0; k < room; k++)
			r[k] = (uint8_t)rand();
		if (room >= 4)
			put32(r, 0, (uint32_t)rand() % 32);
		read += record_read(r, room, &e, &name);
	}
	assert_true(read > 1000);
}

static int set_up(void **state)
{
	(void)state;
	guarded = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return guarded == MAP_FAILED || mprotect(guarded + PAGE, PAGE, PROT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(kernel),
		cmocka_unit_test(sized),
		cmocka_unit_test(never_beyond),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
