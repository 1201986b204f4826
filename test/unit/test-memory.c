/* SPDX-License-Identifier: MIT */
/* The memory of processes: of files as the kernel writes them, and of this very process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/memory.h"

static char proc[64];

static void put(pid_t pid, const char *name, const char *text)
{
	char path[128];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	to = fopen(path, "w");
	assert_non_null(to);
	assert_true(fputs(text, to) >= 0);
	assert_int_equal(fclose(to), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(proc, "/tmp/sbinject-memory.XXXXXX");
	return mkdtemp(proc) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	for (int pid = 1; pid < 5; pid++) {
		snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
		remove(path);
		snprintf(path, sizeof(path), "%s/%d/smaps_rollup", proc, pid);
		remove(path);
		snprintf(path, sizeof(path), "%s/%d", proc, pid);
		remove(path);
	}
	return rmdir(proc);
}

#define ROLLUP                                                                    \
	"55d000000000-7ffe00000000 ---p 00000000 00:00 0    [rollup]\n"           \
	"Rss:                %d kB\nPss:                 20 kB\nPss_Anon: 7 kB\n" \
	"Anonymous:           10 kB\nAnonHugePages:        0 kB\nSwap:   3 kB\n"  \
	"SwapPss:              1 kB\n"

static void put_walked(pid_t pid, int rss_kib)
{
	char text[512];

	put(pid, "status", "Name:\tVmRSS: 7 kB\nVmRSS:\t 5 kB\nRssAnon:\t 1 kB\nVmSwap:\t0 kB\n");
	snprintf(text, sizeof(text), ROLLUP, rss_kib);
	put(pid, "smaps_rollup", text);
}

static void test_sum(void **state)
{
	struct memory_values v;
	const pid_t pid[] = { 1, 2, 3 };

	(void)state;
	put_walked(1, 40);
	put_walked(2, 60);
	put(3, "status", "Name:\tkthreadd\n"); /* no memory of its own */
	memory_read(proc, pid, 3, &v);
	for (int r = 0; r < MEMORY_ROWS; r++)
		assert_int_equal(v.why[r], 0);
	assert_int_equal(v.of[MEMORY_PROCESSES], 2);
	assert_int_equal(v.of[MEMORY_RSS], 100 * 1024);
	assert_int_equal(v.of[MEMORY_PSS], 40 * 1024);
	assert_int_equal(v.of[MEMORY_ANONYMOUS], 20 * 1024);
	assert_int_equal(v.of[MEMORY_SWAP], 6 * 1024);
}

/* Its pages are not walked: the file that would do so says something else. */
static void test_large(void **state)
{
	struct memory_values v;
	const pid_t pid[] = { 1, 4 };

	(void)state;
	put_walked(1, 40);
	put(4, "status", "VmRSS:\t 5000000 kB\nRssAnon:\t 4000000 kB\nVmSwap:\t 2 kB\n");
	put(4, "smaps_rollup", "Rss: 1 kB\nPss: 1 kB\n");
	memory_read(proc, pid, 2, &v);
	assert_int_equal(v.of[MEMORY_RSS], 5000040ull * 1024);
	assert_int_equal(v.of[MEMORY_ANONYMOUS], 4000010ull * 1024);
	assert_int_equal(v.of[MEMORY_SWAP], 5 * 1024);
	assert_int_equal(v.why[MEMORY_PSS], MEMORY_LARGE);
	assert_int_equal(v.of[MEMORY_PSS], 0);
}

static void test_ended(void **state)
{
	struct memory_values v;
	const pid_t pid[] = { 1 };

	(void)state;
	memory_read(proc, pid, 1, &v);
	for (int r = 0; r < MEMORY_ROWS; r++) {
		assert_int_equal(v.why[r], MEMORY_ENDED);
		assert_int_equal(v.of[r], 0);
	}
	memory_read(proc, NULL, 0, &v);
	assert_int_equal(v.why[MEMORY_RSS], MEMORY_ENDED);
}

/* 32 MiB more are 32 MiB more, anonymous and this process's own. */
static void test_grows(void **state)
{
	enum { MORE = 32 << 20, SLACK = 1 << 20 };
	struct memory_values before, now;
	const pid_t pid[] = { getpid() };
	char *more;

	(void)state;
	memory_read("/proc", pid, 1, &before);
	if (before.why[MEMORY_RSS])
		skip();
	more = mmap(NULL, MORE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(more != MAP_FAILED);
	memset(more, 1, MORE);
	memory_read("/proc", pid, 1, &now);
	for (int r = MEMORY_RSS; r <= MEMORY_ANONYMOUS; r++) {
		uint64_t grown = now.of[r] + now.of[MEMORY_SWAP] - before.of[r];

		assert_true(grown >= MORE - SLACK && grown <= MORE + SLACK);
	}
	assert_true(now.of[MEMORY_TOOK] > 0);
	munmap(more, MORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sum, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
		cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
