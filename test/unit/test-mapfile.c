/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/session/inject/mapfile.h"

#define OURS "7f0000001000 82 " MAPFILE_PREFIX "f\n"

static char path[64];
static pid_t child; /* whose map it is */
static int talk;

/* Opens its map with the flags that it reads, until the next ones come. */
static void child_main(int fd)
{
	int flags, open_fd = -1;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	while (read(fd, &flags, sizeof(flags)) == sizeof(flags)) {
		if (open_fd >= 0)
			close(open_fd);
		open_fd = flags < 0 ? -1 : open(path, flags);
		if (write(fd, &flags, sizeof(flags)) != sizeof(flags))
			break;
	}
	_exit(0);
}

static void child_opens(int flags)
{
	assert_int_equal(write(talk, &flags, sizeof(flags)), sizeof(flags));
	assert_int_equal(read(talk, &flags, sizeof(flags)), sizeof(flags));
}

static int setup(void **state)
{
	int pair[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		close(pair[0]);
		child_main(pair[1]);
	}
	close(pair[1]);
	talk = pair[0];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)child);
	unlink(path);
	return child < 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	close(talk);
	return waitpid(child, NULL, 0) != child;
}

static void put(const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

/* NULL: there is no file. */
static void is(const char *text, size_t len)
{
	char got[512];
	FILE *f = fopen(path, "r");

	if (!text) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof(got), f), len);
	fclose(f);
	assert_memory_equal(got, text, len);
}

static void append(const char *lines, int want)
{
	struct sb_err err = { 0 };
	struct mapfile m;

	assert_int_equal(mapfile_open(&m, child, &err), 0);
	assert_int_equal(mapfile_append(&m, lines, strlen(lines), &err), want);
	mapfile_close(&m);
}

static void clean(void)
{
	struct sb_err err = { 0 };
	struct mapfile m;

	assert_int_equal(mapfile_open(&m, child, &err), 0);
	assert_int_equal(mapfile_clean(&m, &err), 0);
	mapfile_close(&m);
}

static void cleaned(const char *text, size_t len, const char *want, size_t want_len)
{
	put(text, len);
	clean();
	is(want, want_len);
}
#define CLEANED(text, want) cleaned(text, sizeof(text) - 1, want, sizeof(want) - 1)

static void test_new_file(void **state)
{
	struct stat st;

	(void)state;
	umask(0777);
	append(OURS, 0);
	umask(022);
	is(OURS, strlen(OURS));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	append(OURS, 0);
	is(OURS OURS, 2 * strlen(OURS));
	clean();
	is(NULL, 0);
	clean();
	is(NULL, 0);
}

static void test_lines_of_others_stay(void **state)
{
	(void)state;
	CLEANED("1 2 a\n" OURS, "1 2 a\n");
	CLEANED("1 2 a\n" OURS OURS, "1 2 a\n");
	CLEANED("1 2 a\n\n\n", "1 2 a\n\n\n");
	CLEANED("", "");
	put("1 2 a", 5);
	append(OURS, 0);
	is("1 2 a\n" OURS, 6 + strlen(OURS));
	clean();
	is("1 2 a\n", 6);
}

/* Ours are blank between others: nothing behind them moves. */
static void test_between(void **state)
{
	char want[sizeof(OURS "1 2 a\n")];

	(void)state;
	memset(want, '\n', sizeof(want));
	memcpy(want + strlen(OURS), "1 2 a\n", 6);
	cleaned(OURS "1 2 a\n", strlen(OURS) + 6, want, strlen(OURS) + 6);
	cleaned(OURS "1 2 a\n" OURS, 2 * strlen(OURS) + 6, want, strlen(OURS) + 6);
}

static void test_what_only_looks_like_ours(void **state)
{
	(void)state;
	CLEANED("x 2 " MAPFILE_PREFIX "f\n", "x 2 " MAPFILE_PREFIX "f\n");
	CLEANED("1 " MAPFILE_PREFIX "f\n", "1 " MAPFILE_PREFIX "f\n");
	CLEANED("1 2 a" MAPFILE_PREFIX "f\n", "1 2 a" MAPFILE_PREFIX "f\n");
	CLEANED("1  2 " MAPFILE_PREFIX "\n", "1  2 " MAPFILE_PREFIX "\n");
	CLEANED("1 2 sbinject", "1 2 sbinject");
	CLEANED("1 2 ", "1 2 ");
	CLEANED("1 2", "1 2");
	CLEANED("1 ", "1 ");
	CLEANED("\0\0\0\n1 2 \0" MAPFILE_PREFIX "\n", "\0\0\0\n1 2 \0" MAPFILE_PREFIX "\n");
	cleaned("1 2 " MAPFILE_PREFIX, strlen("1 2 " MAPFILE_PREFIX), NULL, 0);
}

/* The process has it open: the file that it is about to write must not be another one. */
static void test_open_file_stays(void **state)
{
	char blank[sizeof(OURS)];

	(void)state;
	memset(blank, '\n', sizeof(blank));
	append(OURS, 0);
	child_opens(O_WRONLY | O_APPEND);
	clean();
	is(blank, strlen(OURS));
	append(OURS, 0);
	child_opens(O_WRONLY);
	append(OURS, -SB_EFILE);
	child_opens(O_RDONLY);
	append(OURS, 0);
	child_opens(-1);
	clean();
	is(NULL, 0);
}

static void test_no_regular_file(void **state)
{
	(void)state;
	assert_int_equal(symlink("/tmp/sbinject-test-mapfile", path), 0);
	append(OURS, -SB_EFILE);
	clean();
	unlink(path);
	assert_int_equal(access("/tmp/sbinject-test-mapfile", F_OK), -1);
	assert_int_equal(mkfifo(path, 0600), 0);
	append(OURS, -SB_EFILE);
	clean();
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_of_others_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_between, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_only_looks_like_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_file_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_regular_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
