/* SPDX-License-Identifier: MIT */
/* Sources of progress that can be read without a target, and what is drawn of their names. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/live/progress.h"
#include "src/live/read.h"
#include "src/out/sweep-plot.h"

static char path[64];

static void put(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void *put_later(void *text)
{
	nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
	put(text);
	return NULL;
}

static struct progress *open_file(void)
{
	char source[80];
	struct progress *p = NULL;
	struct sb_err err = { 0 };
	int fd;

	strcpy(path, "/tmp/test-progress-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(source, sizeof(source), "file:%s", path);
	assert_int_equal(progress_open(source, false, &p, &err), 0);
	return p;
}

static double value_of(struct progress *p)
{
	struct progress_value v;
	struct sb_err err = { 0 };

	assert_int_equal(progress_read(p, &v, &err), 0);
	assert_int_equal(err.code, 0);
	return v.count;
}

/* A reader comes between the truncation and the write, or between a rotation's two steps. */
static void test_file_is_empty_or_away_for_a_moment(void **state)
{
	struct progress *p = open_file();
	pthread_t writer;

	(void)state;
	put("41\n");
	assert_true(value_of(p) == 41);
	for (int away = 0; away < 2; away++) {
		put("");
		if (away)
			unlink(path);
		assert_int_equal(pthread_create(&writer, NULL, put_later, away ? "43" : "42"), 0);
		assert_true(value_of(p) == 42 + away);
		pthread_join(writer, NULL);
	}
	progress_close(p);
	unlink(path);
}

static void test_file_that_never_had_a_number(void **state)
{
	struct progress *p = open_file();
	struct progress_value v;
	struct sb_err err = { 0 };

	(void)state;
	put("text");
	assert_int_equal(progress_read(p, &v, &err), -SB_EFILE);
	assert_non_null(strstr(err.what, "no number"));
	progress_close(p);
	unlink(path);
}

static void test_last_number(void **state)
{
	static const struct {
		const char *text;
		double number;
	} row[] = {
		{ "7", 7 },
		{ "step-45", 45 },
		{ "name-45 of it\n", 45 },
		{ "1 2 3 done\n", 3 },
		{ "x=-2.5e-1", -0.25 },
		{ "items: 12.", 12 },
	};
	struct progress *p = open_file();

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		put(row[i].text);
		assert_true(value_of(p) == row[i].number);
	}
	progress_close(p);
	unlink(path);
}

static void test_hash_within_a_label(void **state)
{
	struct progress *p = NULL;
	struct progress_value v;
	struct sb_err err = { 0 };

	(void)state;
	assert_int_equal(
		progress_open("prom:http://127.0.0.1:1/m#x_total{path=\"/a#b\"}", false, &p, &err),
		0);
	assert_int_equal(progress_read(p, &v, &err), -SB_EFILE);
	assert_non_null(strstr(err.what, "http://127.0.0.1:1/m: "));
	progress_close(p);
}

/* Series with the labels are added up, bound by bound, in whatever order they come. */
static void test_buckets_of_a_histogram(void **state)
{
	static const char body[] = "# TYPE lat histogram\n"
				   "lat_bucket{le=\"0.1\",path=\"/a\"} 4\n"
				   "lat_bucket{le=\"+Inf\",path=\"/a\"} 9\n"
				   "lat_bucket{path=\"/b\",le=\"0.01\"} 1\n"
				   "lat_bucket{path=\"/a\",le=\"0.01\"} 2\n"
				   "lat_bucket{path=\"/b\",le=\"0.1\"} 1\n"
				   "lat_bucket{path=\"/b\",le=\"+Inf\"} 3\n"
				   "lat_bucket_size 7\nlat_bucket{path=\"/a\"} 100\n"
				   "lat_sum{path=\"/a\"} 1.5\nlat_count{path=\"/a\"} 9\n";
	struct progress_value v;

	(void)state;
	progress_prom_buckets(body, "lat", "", &v);
	assert_int_equal(v.n_buckets, 3);
	assert_true(v.bucket[0].le == 0.01 && v.bucket[0].count == 3);
	assert_true(v.bucket[1].le == 0.1 && v.bucket[1].count == 5);
	assert_true(v.bucket[2].le > 1e300 && v.bucket[2].count == 12);
	progress_prom_buckets(body, "lat", "path=\"/b\"", &v);
	assert_true(v.n_buckets == 3 && v.bucket[2].count == 3);
	progress_prom_buckets(body, "other", "", &v);
	assert_int_equal(v.n_buckets, 0);
}

/* Of calls, buckets without one are left out, and bounds are rounded to ns. */
static void test_growth_between_two_histograms(void **state)
{
	struct sweep_bucket was[] = { { 100, 104, 3 }, { 5000, 5100, 7 } };
	struct sweep_bucket is[] = { { 100, 104, 3 }, { 208, 216, 2 }, { 5001, 5100, 9 } };
	struct sweep_reading a = { .bucket = was, .n_buckets = 2, .sparse = true };
	struct sweep_reading b = { .bucket = is, .n_buckets = 3, .sparse = true };
	struct sweep_bucket *grown;
	size_t n;

	(void)state;
	grown = sweep_reading_buckets(&a, &b, &n);
	assert_non_null(grown);
	assert_int_equal(n, 2);
	assert_true(grown[0].lo_ns == 208 && grown[0].n == 2);
	assert_true(grown[1].lo_ns == 5001 && grown[1].n == 2);
	free(grown);
	was[1].n = 11; /* the last two were counted twice, as they were just being made */
	grown = sweep_reading_buckets(&a, &b, &n);
	assert_non_null(grown);
	assert_true(n == 1 && grown[0].n == 2);
	free(grown);
	was[1].n = 100; /* and these were not */
	assert_null(sweep_reading_buckets(&a, &b, &n));
	a.sparse = b.sparse = false; /* another set of buckets: a count from bound to bound is no
				      * growth */
	assert_null(sweep_reading_buckets(&a, &b, &n));
	assert_int_equal(n, 0);
}

static void burn(double seconds)
{
	struct timespec ts;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9 < seconds);
}

/* The time of a process is its own clock's, and stays what it was once it has ended. */
static void test_cpu_of_a_process_that_ends(void **state)
{
	struct sb_err err = { 0 };
	struct progress *p = NULL;
	char text[32], byte = 0;
	int go[2], back[2];
	double at_end;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go) | pipe(back), 0);
	pid = fork();
	if (!pid) { /* burns a tenth of a second at each byte */
		for (double seconds = 0.1; read(go[0], &byte, 1) == 1 && byte; seconds += 0.1) {
			burn(seconds);
			if (write(back[1], "x", 1) != 1)
				break;
		}
		_exit(0);
	}
	snprintf(text, sizeof(text), "cpu:%d", (int)pid);
	assert_int_equal(progress_open(text, false, &p, &err), 0);
	assert_true(value_of(p) < 0.1);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(write(go[1], "x", 1), 1);
		assert_int_equal(read(back[0], &byte, 1), 1);
		assert_true(value_of(p) >= 0.1 * i && value_of(p) < 0.1 * i + 0.05);
	}
	at_end = value_of(p);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(value_of(p) == at_end);
	progress_close(p);
	assert_int_equal(progress_open(text, false, &p, &err), -SB_EFILE); /* it is gone */
	err = (struct sb_err){ 0 };
	assert_int_equal(progress_open("cpu:none", false, &p, &err), -SB_EUSAGE);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(back[i]);
	}
}

/* gnuplot runs what stands between backquotes in double quotes. */
static void test_names_are_no_commands_of_gnuplot(void **state)
{
	struct sweep_result *res = sweep_result_new(1);
	char *script = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&script, &len);

	(void)state;
	res->target[0].spec = strdup(":a`touch x`'\"b\\");
	out_sweep_script(f, "svg", "a`b'.svg", res, 1);
	fclose(f);
	assert_non_null(strstr(script, "set title ':a`touch x`''\"b\\' . "));
	assert_non_null(strstr(script, "set output 'a`b''.svg'\n"));
	free(script);
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_is_empty_or_away_for_a_moment),
		cmocka_unit_test(test_file_that_never_had_a_number),
		cmocka_unit_test(test_last_number),
		cmocka_unit_test(test_hash_within_a_label),
		cmocka_unit_test(test_buckets_of_a_histogram),
		cmocka_unit_test(test_growth_between_two_histograms),
		cmocka_unit_test(test_cpu_of_a_process_that_ends),
		cmocka_unit_test(test_names_are_no_commands_of_gnuplot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
