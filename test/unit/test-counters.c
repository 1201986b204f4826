/* SPDX-License-Identifier: MIT */
/* Which metrics of a page count work: by their types and names, in a text that may be anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "src/live/counters.h"

static struct counter *list;
static size_t n;

static void read_page(const char *body)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].name);
	free(list);
	list = counters_list(body, &n);
}

static void is(size_t i, const char *name, bool events, double value)
{
	assert_true(i < n);
	assert_string_equal(list[i].name, name);
	assert_int_equal(list[i].events, events);
	assert_true(list[i].value == value);
}

static void by_type(void **state)
{
	(void)state;
	read_page("# HELP vllm:tokens_total so many\n"
		  "# TYPE vllm:tokens_total counter\n"
		  "vllm:tokens_total{model=\"a\"} 3\nvllm:tokens_total{model=\"b\"} 4\n"
		  "# TYPE queue gauge\nqueue 9\n"
		  "# TYPE latency_seconds histogram\r\n"
		  "latency_seconds_bucket{le=\"1\"} 5\nlatency_seconds_sum 2.5\n"
		  "latency_seconds_count 6\n"
		  "# TYPE size_bytes summary\n"
		  "size_bytes{quantile=\"0.5\"} 100\nsize_bytes_sum 900\nsize_bytes_count 8\n"
		  "# TYPE opened counter\nopened_total 2\n"
		  "no_type_total 7\n");
	assert_int_equal(n, 4);
	is(0, "vllm:tokens_total", false, 7);
	is(1, "latency_seconds", true, 6);
	is(2, "size_bytes", true, 8);
	is(3, "opened", false, 2);
}

static void what_counts_no_work(void **state)
{
	(void)state;
	read_page("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 3\n"
		  "# TYPE python_gc_collections_total counter\npython_gc_collections_total 3\n"
		  "# TYPE busy_seconds_total counter\nbusy_seconds_total 3\n"
		  "# TYPE sent_bytes_total counter\nsent_bytes_total 3\n"
		  "# TYPE go_gc_duration_seconds summary\n"
		  "go_gc_duration_seconds_sum 1\ngo_gc_duration_seconds_count 1\n");
	assert_int_equal(n, 0);
}

static void damaged(void **state)
{
	(void)state;
	read_page("");
	assert_int_equal(n, 0);
	read_page("<html># TYPE a counter\n# TYPE \n# TYPE b\n# TYPE c counters\n# TYPE d counter\n"
		  "d x\n# TYPE e counter\ne 1\n# TYPE e counter\n# TYPE f counter");
	assert_int_equal(n, 1);
	is(0, "e", false, 1);
}

/* A page may be as long as it likes: there is an end to what is looked for in it. */
static void too_many(void **state)
{
	char *page = malloc(600 * 64), *to = page;

	(void)state;
	assert_non_null(page);
	for (int i = 0; i < 600; i++)
		to += sprintf(to, "# TYPE m%d counter\nm%d 1\n", i, i);
	read_page(page);
	assert_int_equal(n, COUNTERS_MOST);
	is(COUNTERS_MOST - 1, "m255", false, 1);
	free(page);
	page = malloc((32u << 20) + 64);
	assert_non_null(page);
	memset(page, '#', 32u << 20);
	strcpy(page + (32u << 20), "\n# TYPE a counter\na 1\n# TYPE b counter\nb 1\n");
	read_page(page);
	assert_int_equal(n, 1);
	free(page);
}

static void a_source_that_names_no_metric(void **state)
{
	(void)state;
	assert_true(counters_is_page("prom:http://127.0.0.1:8000/metrics"));
	assert_false(counters_is_page("prom:http://127.0.0.1:8000/metrics#a_total"));
	assert_false(counters_is_page("lib:prom"));
	assert_false(counters_is_page("file:/prom:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_type),
		cmocka_unit_test(what_counts_no_work),
		cmocka_unit_test(damaged),
		cmocka_unit_test(too_many),
		cmocka_unit_test(a_source_that_names_no_metric),
	};
	int ret = cmocka_run_group_tests_name("counters", tests, NULL, NULL);

	read_page("");
	free(list);
	return ret;
}
