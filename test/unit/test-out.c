/* SPDX-License-Identifier: MIT */
/* Golden files lie in golden/; run with SB_GOLDEN_WRITE=1 to write them anew, and read the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sample.h"
#include "src/out/out.h"

static char dir[] = "/tmp/sbinject-out.XXXXXX";

static char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static char *read_text(const char *path)
{
	FILE *from = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	if (!from || getdelim(&text, &room, '\0', from) < 0)
		fail_msg("cannot read %s", path);
	fclose(from);
	return text;
}

static void write_text(const char *path, const char *text)
{
	FILE *to = fopen(path, "w");

	assert_non_null(to);
	assert_true(fputs(text, to) >= 0 && fclose(to) == 0);
}

static void same_as_golden(const char *name, char *text)
{
	const char *src = getenv("SRC");
	char path[4096], *golden;

	snprintf(path, sizeof(path), "%s/test/unit/golden/%s", src ? src : ".", name);
	if (getenv("SB_GOLDEN_WRITE"))
		write_text(path, text);
	golden = read_text(path);
	assert_string_equal(text, golden);
	free(golden);
	free(text);
}

typedef void writer_fn(FILE *to, const struct result *res);

static void table(FILE *to, const struct result *res)
{
	out_table(to, res, 0);
}

static void table_times_first(FILE *to, const struct result *res)
{
	out_table(to, res, OUT_TIMES_FIRST);
}

static void table_by_process(FILE *to, const struct result *res)
{
	out_table(to, res, OUT_BY_PROCESS);
}

static char *written(writer_fn *writer, struct result *res)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	writer(to, res);
	fclose(to);
	result_free(res);
	return text;
}

static void test_table_is_the_man_pages(void **state)
{
	(void)state;
	same_as_golden("table-plain.txt", written(table, sample_plain()));
}

static void test_table_says_what_figures_alone_hide(void **state)
{
	(void)state;
	same_as_golden("table-full.txt", written(table, sample_full()));
}

static void test_table_with_many_processes_ends(void **state)
{
	struct result *res = sample_plain();

	(void)state;
	for (int i = 0; i < 25; i++)
		sample_process(res, 100 + i, "worker", i == 3 ? 0 : 10);
	same_as_golden("table-processes.txt", written(table_by_process, res));
}

/*
 * Of many processes those of one name, or of names that differ by numbers, are added up; those that
 * were never hit have a row as well.
 */
static void test_table_with_many_processes_shows_roles(void **state)
{
	struct result *res = sample_plain();

	(void)state;
	for (int i = 0; i < 25; i++) {
		char rank[32];

		snprintf(rank, sizeof(rank), "Worker_TP%d", i);
		sample_process(res, 100 + i,
			       i % 5 == 0 ? "helper2" :
			       i % 5 == 1 ? rank :
					    "worker",
			       i == 3 ? 0 : 10);
	}
	same_as_golden("table-roles.txt", written(table, res));
}

/* Two targets may differ by pid= alone: without it their rows would be the same. */
static void test_table_names_the_process_that_limits_a_target(void **state)
{
	struct result *res = sample_plain();
	char *text;

	(void)state;
	res->target->pid = 4711;
	res->target->counts.overrun_ns = res->target->counts.injected_ns;
	text = written(table, res);
	assert_non_null(strstr(text, "libc.so.6:getpid pid=4711  jump"));
	assert_non_null(strstr(text, "overrun: libc.so.6:getpid pid=4711: "));
	free(text);
}

static void test_table_shows_no_figure_that_is_not_known(void **state)
{
	struct result *res = sample_plain();
	char *text;

	(void)state;
	res->target->active_s = NAN;
	res->target->given.known = false;
	snprintf(res->target->given.reason, sizeof(res->target->given.reason), "no clock");
	text = written(table, res);
	assert_non_null(strstr(text, "  120034       -  5.00us      -    600.2ms\n"));
	assert_non_null(strstr(text, "given unknown: libc.so.6:getpid: no clock\n"));
	free(text);
}

/* A target of which no function is timed, or that was not found, has unknown times, not zeros. */
static void test_table_shows_how_long_calls_took(void **state)
{
	(void)state;
	same_as_golden("table-timed.txt", written(table, sample_timed()));
	same_as_golden("table-trace.txt", written(table_times_first, sample_timed()));
}

static void test_table_without_targets_is_silent(void **state)
{
	char *text = written(table, result_new(0));

	(void)state;
	assert_string_equal(text, "");
	free(text);
}

static void test_nothing_from_outside_reaches_the_terminal_raw(void **state)
{
	writer_fn *const writers[] = { table, out_list };

	(void)state;
	for (size_t w = 0; w < 2; w++) {
		char *text = written(writers[w], sample_full());

		for (char *c = text; *c; c++)
			assert_true((unsigned char)*c >= ' ' || *c == '\n');
		assert_null(strchr(text, '\xff'));
		free(text);
	}
}

static void test_list(void **state)
{
	(void)state;
	same_as_golden("list.txt", written(out_list, sample_full()));
	same_as_golden("list-one.txt", written(out_list, sample_plain()));
}

static void test_list_shows_what_can_be_timed(void **state)
{
	struct result *res = sample_timed();

	(void)state;
	for (size_t t = 0; t < res->n_targets; t++)
		for (size_t i = 0; i < res->target[t].n_untimed; i++) {
			struct result_site *site = &res->target[t].site[i + (t == 2)];

			site->untimed = sample_copy(res->target[t].untimed[i].reason);
		}
	same_as_golden("list-timed.txt", written(out_list, res));
}

static char *json_of(bool full, bool lines)
{
	struct result *res = full ? sample_full() : sample_plain();
	char *path = in_dir("golden.json"), *text;

	unlink(path);
	assert_int_equal(out_json(path, res, lines, NULL), 0);
	result_free(res);
	text = read_text(path);
	unlink(path);
	return text;
}

static char *result_text(struct result *res)
{
	char *text = result_to_json(res, true);

	result_free(res);
	return text;
}

static void test_json(void **state)
{
	(void)state;
	same_as_golden("run-plain.json", json_of(false, false));
	same_as_golden("run-full.json", json_of(true, false));
	same_as_golden("run-plain.jsonl", json_of(false, true));
	same_as_golden("run-timed.json", result_text(sample_timed()));
}

static void test_json_replaces_the_file_in_one_step(void **state)
{
	struct result *res = sample_plain();
	char *path = in_dir("run.json"), *text;
	struct stat before, after;

	(void)state;
	write_text(path, "old");
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(out_json(path, res, false, NULL), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino != after.st_ino);
	assert_int_equal(after.st_mode & 0777, 0640);
	text = read_text(path);
	assert_true(text[0] == '{' && !strcmp(text + strlen(text) - 2, "}\n"));
	free(text);
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
	assert_int_equal(mkdir(dir, 0700), 0);
	result_free(res);
}

static void test_json_follows_links_and_leaves_them(void **state)
{
	struct result *res = sample_plain();
	char real[128], *path;
	struct stat st;

	(void)state;
	snprintf(real, sizeof(real), "%s", in_dir("real.json"));
	path = in_dir("link.json");
	write_text(real, "old");
	assert_int_equal(symlink("real.json", path), 0);
	assert_int_equal(out_json(path, res, false, NULL), 0);
	assert_true(lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
	assert_true(lstat(real, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 100);
	unlink(path);
	unlink(real);
	result_free(res);
}

static void test_json_never_replaces_a_device_or_pipe(void **state)
{
	struct result *res = sample_plain();
	char *path = in_dir("fifo"), text[8] = "";
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(out_json("/dev/null", res, false, NULL), 0);
	assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(out_json(path, res, true, NULL), 0);
	assert_int_equal(out_json(path, res, false, NULL), 0);
	assert_true(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
	assert_int_equal(read(fd, text, 7), 7);
	assert_string_equal(text, "{\"schem");
	close(fd);
	unlink(path);
	result_free(res);
}

static void test_jsonl_appends_a_line_a_run(void **state)
{
	struct result *res = sample_full();
	char *path = in_dir("runs.jsonl"), *text, *line, *save;
	int lines = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(out_json(path, res, true, NULL), 0);
	text = read_text(path);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct result *again;

		assert_int_equal(result_from_json(line, &again, NULL), 0);
		result_free(again);
		lines++;
	}
	assert_int_equal(lines, 3);
	free(text);
	unlink(path);
	result_free(res);
}

static void test_json_errors_name_the_file(void **state)
{
	static const char *const bad[] = { "/nonexistent/dir/run.json", "/tmp", "/dev/full", "" };
	struct result *res = sample_plain();

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
		struct sb_err err = { 0 };
		const char *path = bad[i / 2];

		assert_int_equal(out_json(path, res, i % 2, &err), -SB_EFILE);
		assert_non_null(strstr(err.what, path));
		assert_true(err.sys_errno != 0 && *err_remedy(&err));
	}
	result_free(res);
}

static char *status_text(const struct out_status *st, bool terminal)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	out_status(to, st, terminal);
	fclose(to);
	return text;
}

static void expect_status(const struct out_status *st, bool terminal, const char *wanted)
{
	char *text = status_text(st, terminal);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_status_line(void **state)
{
	struct out_status_target two[] = {
		{ "libc.so.6:getpid",
		  { 120034, 120034, 600200000, 0 },
		  { 4001, 4001, 0, 0 },
		  5001,
		  false,
		  -1,
		  0 },
		{ "lib\n:\xc3\xa9", { 0 }, { 0 }, -1, false, -1, 0 },
	};
	struct out_status st = { 12.04, 0.1, 1, two };

	(void)state;
	setenv("COLUMNS", "62", 1);
	expect_status(&st, false, "12.0s libc.so.6:getpid hits 120034 40010/s given 5.00us\n");
	expect_status(&st, true, "\r12.0s libc.so.6:getpid hits 120034 40010/s given 5.00us\x1b[K");
	st.n = 2;
	expect_status(&st, false,
		      "12.0s libc.so.6:getpid hits 120034 40010/s given 5.00us"
		      " \xc2\xb7 lib\\n:\xc3\xa9 hits 0 0/s given -\n");
	expect_status(&st, true,
		      "\r12.0s libc.so.6:getpid hits 120034 40010/s given 5.00us"
		      " \xc2\xb7 lib\x1b[K");
	st.interval_s = 0;
	st.n = 1;
	expect_status(&st, false, "12.0s libc.so.6:getpid hits 120034 -/s given 5.00us\n");
	two[0].timed = true;
	two[0].took_ns = 20316;
	expect_status(&st, false,
		      "12.0s libc.so.6:getpid hits 120034 -/s given 5.00us took 20.3us\n");
	two[0].took_ns = -1;
	expect_status(&st, false, "12.0s libc.so.6:getpid hits 120034 -/s given 5.00us took -\n");
	two[0].timed = false;
	two[0].pid = 12;
	expect_status(&st, false, "12.0s libc.so.6:getpid pid=12 hits 120034 -/s given 5.00us\n");
	setenv("COLUMNS", "1", 1);
	expect_status(&st, true, "\r\x1b[K");
}

/* What the writer prints on a terminal of so many columns. */
static char *on_terminal(writer_fn *writer, struct result *res, unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	char *text = calloc(1, 65536);
	size_t used = 0;
	ssize_t n;
	FILE *to;

	assert_true(master >= 0 && text && grantpt(master) == 0 && unlockpt(master) == 0);
	to = fopen(ptsname(master), "w");
	assert_non_null(to);
	assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
	setvbuf(to, NULL, _IOFBF, 65536);
	writer(to, res);
	fflush(to);
	fcntl(master, F_SETFL, O_NONBLOCK);
	while ((n = read(master, text + used, 65535 - used)) > 0)
		used += (size_t)n;
	fclose(to);
	close(master);
	result_free(res);
	return text;
}

static struct result *sample_long(void)
{
	struct result *res = sample_plain();
	char *path = malloc(300);

	memset(path, 'x', 300);
	memcpy(path, "/opt/", 5);
	strcpy(path + 260, "/lib.so:work");
	free(res->target[0].spec);
	res->target[0].spec = path;
	return res;
}

static void test_long_names_are_cut_on_a_terminal(void **state)
{
	char *narrow, *wide, *file;

	(void)state;
	setenv("NO_COLOR", "1", 1);
	narrow = on_terminal(table, sample_long(), 120);
	wide = on_terminal(table, sample_long(), 500);
	assert_true(strcspn(narrow, "\r\n") <= 120);
	assert_non_null(strstr(narrow, "/opt/xxx"));
	assert_non_null(strstr(narrow, "xxx...xxx"));
	assert_non_null(strstr(narrow, "/lib.so:work  jump"));
	assert_non_null(strstr(wide, "xxxxxx/lib.so:work  jump"));
	assert_null(strstr(wide, "..."));
	file = written(table, sample_long());
	assert_null(strstr(file, "..."));
	free(narrow);
	free(wide);
	free(file);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_the_man_pages),
		cmocka_unit_test(test_table_says_what_figures_alone_hide),
		cmocka_unit_test(test_table_with_many_processes_ends),
		cmocka_unit_test(test_table_with_many_processes_shows_roles),
		cmocka_unit_test(test_table_names_the_process_that_limits_a_target),
		cmocka_unit_test(test_table_shows_no_figure_that_is_not_known),
		cmocka_unit_test(test_table_shows_how_long_calls_took),
		cmocka_unit_test(test_table_without_targets_is_silent),
		cmocka_unit_test(test_nothing_from_outside_reaches_the_terminal_raw),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_list_shows_what_can_be_timed),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_replaces_the_file_in_one_step),
		cmocka_unit_test(test_json_follows_links_and_leaves_them),
		cmocka_unit_test(test_json_never_replaces_a_device_or_pipe),
		cmocka_unit_test(test_jsonl_appends_a_line_a_run),
		cmocka_unit_test(test_json_errors_name_the_file),
		cmocka_unit_test(test_status_line),
		cmocka_unit_test(test_long_names_are_cut_on_a_terminal),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
