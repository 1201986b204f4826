/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/maps-look.h"

#define TEXT                                                                                  \
	"00400000-00401000 r--p 00000000 fe:00 123                        /usr/bin/a b c\n"   \
	"00401000-00402000 r-xp 00001000 fe:00 123                        /usr/bin/a b c\n"   \
	"00500000-00501000 rw-p 00000000 00:00 0 \n"                                          \
	"00600000-00700000 rw-p 00000000 00:00 0                          [heap]\n"           \
	"7f0000000000-7f0000001000 rwxs 00002000 103:1f 99                /tmp/x (deleted)\n" \
	"7f0000002000-7f0000003000 ---p 00000000 00:01 5                  /tmp/a\\012b\n"     \
	"7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                  [stack]\n"          \
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]\n"

static void parse(const char *text, struct maps *maps)
{
	struct sb_err err = { 0 };

	assert_int_equal(maps_parse(text, strlen(text), maps, &err), 0);
}

static void test_fields_of_a_line(void **state)
{
	struct maps m;

	(void)state;
	parse(TEXT, &m);
	assert_int_equal(m.count, 8);
	assert_string_equal(m.entry[1].path, "/usr/bin/a b c");
	assert_int_equal(m.entry[1].offset, 0x1000);
	assert_int_equal(m.entry[1].inode, 123);
	assert_int_equal(m.entry[1].dev, 0xfe << 20);
	assert_true(m.entry[1].r && !m.entry[1].w && m.entry[1].x && !m.entry[1].shared);
	assert_string_equal(m.entry[2].path, "");
	assert_true(m.entry[4].deleted && m.entry[4].shared && m.entry[4].w);
	assert_string_equal(m.entry[4].path, "/tmp/x");
	assert_int_equal(m.entry[4].dev, 0x103 << 20 | 0x1f);
	assert_string_equal(m.entry[5].path, "/tmp/a\nb");
	assert_false(m.entry[5].deleted);
	maps_free(&m);
	assert_null(m.entry);
	maps_free(&m);
}

static void test_malformed_lines_are_errors(void **state)
{
	static const char *const bad[] = {
		"x",
		"1000-",
		"1000-2000",
		"2000-1000 r--p 0 00:00 0 \n",
		"1000-2000 rzzp 00000000 00:00 0 \n",
		"1000-2000 r--p 00000000 0000 0 \n",
		"11111111111111111-2 r--p 0 00:00 0 \n",
		"\n",
		"2000-3000 r--p 0 00:00 0 \n1000-2000 r--p 0 00:00 0 \n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sb_err err = { 0 };
		struct maps m;

		assert_int_equal(maps_parse(bad[i], strlen(bad[i]), &m, &err), -SB_EFILE);
		assert_int_equal(m.count, 0);
		assert_null(m.text);
	}
}

static void test_every_prefix_is_parsed_or_refused(void **state)
{
	(void)state;
	for (size_t len = 0; len <= strlen(TEXT); len++) {
		struct maps m;

		if (maps_parse(TEXT, len, &m, NULL) == 0)
			maps_free(&m);
	}
}

static void test_find_is_half_open(void **state)
{
	struct maps m;

	(void)state;
	parse(TEXT, &m);
	assert_ptr_equal(maps_find(&m, 0x401000), &m.entry[1]);
	assert_ptr_equal(maps_find(&m, 0x401fff), &m.entry[1]);
	assert_null(maps_find(&m, 0x402000));
	assert_null(maps_find(&m, 0));
	assert_null(maps_find(&m, UINT64_MAX));
	assert_ptr_equal(maps_find(&m, 0xffffffffff600000), &m.entry[7]);
	maps_free(&m);
}

static void test_gap_is_the_nearest_hole(void **state)
{
	struct maps m;

	(void)state;
	parse(TEXT, &m);
	assert_int_equal(maps_find_gap(&m, 0x401800, 0, UINT64_MAX, 1), 0x402000);
	assert_int_equal(maps_find_gap(&m, 0x400000, 0, UINT64_MAX, 4096), 0x3ff000);
	assert_int_equal(maps_find_gap(&m, 0x401000, 0, 0x402000, 4096), 0x3ff000);
	assert_int_equal(maps_find_gap(&m, 0x7f0000000000, 0, UINT64_MAX, 0x1000),
			 0x7effffffffff & ~0xfffull);
	/* One page between the two, and two pages that do not fit there. */
	assert_int_equal(maps_find_gap(&m, 0x7f0000001800, 0, UINT64_MAX, 0x1000), 0x7f0000001000);
	assert_int_equal(maps_find_gap(&m, 0x7f0000001000, 0x7f0000000000, 0x7f0000003000, 0x2000),
			 0);
	maps_free(&m);
}

static void test_gap_keeps_its_bounds(void **state)
{
	struct maps m;
	uint64_t at;

	(void)state;
	parse(TEXT, &m);
	assert_int_equal(maps_find_gap(&m, 0x401000, 0x400000, 0x402000, 4096), 0);
	assert_int_equal(maps_find_gap(&m, 0x401000, 0x400000, 0x403800, 0x2000), 0);
	assert_int_equal(maps_find_gap(&m, 0, 0, 0x20000, 4096) >= 0x10000, 1);
	assert_int_equal(maps_find_gap(&m, 0x401000, 0, UINT64_MAX, 0), 0);
	assert_int_equal(maps_find_gap(&m, 0x401000, 0, UINT64_MAX, UINT64_MAX), 0);
	/* Under the stack there is room for it to grow; behind it nothing is placed. */
	at = maps_find_gap(&m, 0x7ffffffde000, 0x7ff000000000, UINT64_MAX, 4096);
	assert_true(at && at + 4096 + (64 << 10) <= 0x7ffffffde000);
	/* The heap grows upwards. */
	at = maps_find_gap(&m, 0x700000, 0, UINT64_MAX, 4096);
	assert_int_not_equal(at, 0x700000);
	maps_free(&m);
}

static void test_gap_can_be_mapped(void **state)
{
	struct maps m;
	uint64_t here = (uint64_t)(uintptr_t)&test_gap_can_be_mapped, at;
	struct sb_err err = { 0 };
	void *p;

	(void)state;
	assert_int_equal(maps_read(getpid(), &m, &err), 0);
	assert_non_null(maps_find(&m, here));
	assert_true(maps_find(&m, here)->x);
	at = maps_find_gap(&m, here, here - (1ull << 31), here + (1ull << 31), 65536);
	assert_true(at != 0 && at % 4096 == 0);
	p = mmap((void *)at, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0);
	assert_ptr_equal(p, (void *)at);
	munmap(p, 65536);
	maps_free(&m);
}

static void assert_same_mapping(const struct map_entry *got, const struct map_entry *want)
{
	assert_non_null(got);
	assert_int_equal(got->start, want->start);
	assert_int_equal(got->end, want->end);
	assert_int_equal(got->offset, want->offset);
	assert_int_equal(got->inode, want->inode);
	assert_int_equal(got->dev, want->dev);
	assert_int_equal(got->r << 4 | got->w << 3 | got->x << 2 | got->shared << 1 | got->deleted,
			 want->r << 4 | want->w << 3 | want->x << 2 | want->shared << 1 |
				 want->deleted);
	assert_string_equal(got->path, want->path);
}

/* With a deleted file among them; `whole` as before Linux 6.11. */
static void look_at_all(pid_t pid, bool whole)
{
	struct maps_look look;
	struct maps m;

	assert_int_equal(maps_read(pid, &m, NULL), 0);
	maps_look_open(&look, pid);
	if (whole)
		assert_int_equal(maps_read(pid, &look.maps, NULL), 0);
	look.whole = whole;
	for (size_t i = 0; i < m.count; i++) {
		if (!strcmp(m.entry[i].path, "[vsyscall]")) /* in no process's map */
			continue;
		assert_same_mapping(maps_look_at(&look, m.entry[i].start), &m.entry[i]);
		assert_same_mapping(maps_look_at(&look, m.entry[i].end - 1), &m.entry[i]);
	}
	assert_null(maps_look_at(&look, 0));
	assert_false(look.failed);
	maps_look_close(&look);
	maps_free(&m);
}

static void test_single_mappings(void **state)
{
	int fd = memfd_create("gone", MFD_CLOEXEC);
	struct maps_look look;
	pid_t pid;

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_ptr_not_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	pid = fork(); /* whose map does not change meanwhile */
	if (pid == 0) {
		pause();
		_exit(0);
	}
	look_at_all(pid, false);
	look_at_all(pid, true);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	maps_look_open(&look, pid);
	assert_null(maps_look_at(&look, 0x1000));
	assert_true(look.failed);
	maps_look_close(&look);
	close(fd);
}

static void test_zombie_has_no_map(void **state)
{
	struct sb_err err = { 0 };
	struct maps m;
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(maps_read(pid, &m, &err), 0);
	assert_int_equal(m.count, 0);
	maps_free(&m);
	waitpid(pid, NULL, 0);
	assert_int_equal(maps_read(pid, &m, &err), -SB_ENOPROC);
	assert_int_equal(err.pid, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_of_a_line),
		cmocka_unit_test(test_malformed_lines_are_errors),
		cmocka_unit_test(test_every_prefix_is_parsed_or_refused),
		cmocka_unit_test(test_find_is_half_open),
		cmocka_unit_test(test_gap_is_the_nearest_hole),
		cmocka_unit_test(test_gap_keeps_its_bounds),
		cmocka_unit_test(test_gap_can_be_mapped),
		cmocka_unit_test(test_single_mappings),
		cmocka_unit_test(test_zombie_has_no_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
