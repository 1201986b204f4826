/* SPDX-License-Identifier: MIT */
/* The progress point that find proposes: regular, and not called by another one at a multiple. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "src/live/find-choose.h"

static struct find_rate rate[4];
static struct find_rates rates = { .rate = rate };

static void begin(void)
{
	memset(rate, 0, sizeof(rate));
	rates.n = 0;
	rates.slices = FIND_SLICES;
	for (int s = 0; s < FIND_SLICES; s++)
		rates.slice_s[s] = 0.25;
}

/* A function with `calls` in a slice, which swings by `swing` from one to the next. */
static void add(double share, double calls, double swing)
{
	struct find_rate *r = &rate[rates.n++];

	r->target = (char *)":f";
	r->share = share;
	for (int s = 0; s < FIND_SLICES; s++)
		r->hits[s] = (uint64_t)(calls * (1 + (s % 2 ? swing : -swing)));
}

static void steady_is_chosen(void **state)
{
	(void)state;
	begin();
	add(0.6, 100, 0.8); /* the larger share, in bursts */
	add(0.3, 100, 0.05);
	find_choose(&rates);
	assert_false(rate[0].steady);
	assert_true(rate[1].steady);
	assert_int_equal(rates.point, 1);
	assert_true(fabs(rate[1].per_s - 400) < 5);
}

static void a_multiple_is_an_inner_function(void **state)
{
	(void)state;
	begin();
	add(0.8, 700, 0.1); /* seven times an item, as the load swings */
	add(0.1, 100, 0.1);
	find_choose(&rates);
	assert_int_equal(rate[0].multiple_of, 1);
	assert_int_equal(rates.point, 1);
}

/* Both scatter about as much as is allowed, the inner one a little more. */
static void a_multiple_may_scatter_more_than_its_base(void **state)
{
	(void)state;
	begin();
	add(0.8, 500, 0.34);
	add(0.1, 100, 0.31);
	find_choose(&rates);
	assert_true(rate[1].steady);
	assert_false(rate[0].steady);
	assert_int_equal(rate[0].multiple_of, 1);
	assert_int_equal(rates.point, 1);
}

/* Three items in a slice; the first and the last reading come in the middle of one. */
static void few_items_cut_at_both_ends(void **state)
{
	(void)state;
	begin();
	add(0.8, 15, 0);
	add(0.1, 3, 0);
	rate[0].hits[0] += 4;
	find_choose(&rates);
	assert_int_equal(rate[0].multiple_of, 1);
	assert_int_equal(rates.point, 1);
	begin();
	add(0.8, 13, 0); /* 4.3 calls to each: no whole number */
	add(0.1, 3, 0);
	find_choose(&rates);
	assert_int_equal(rate[0].multiple_of, FIND_NONE);
	assert_int_equal(rates.point, 0);
}

/* The ratio of all calls is whole, but not that of each slice: they have nothing to do with one
 * another. */
static void chance_is_no_multiple(void **state)
{
	(void)state;
	begin();
	add(0.8, 200, 0.25);
	add(0.1, 100, -0.25);
	find_choose(&rates);
	assert_int_equal(rate[0].multiple_of, FIND_NONE);
	assert_int_equal(rates.point, 0);
}

static void equal_rates_the_larger_share(void **state)
{
	(void)state;
	begin();
	add(0.2, 100, 0.02);
	add(0.7, 100, 0.02);
	find_choose(&rates);
	assert_int_equal(rate[0].multiple_of, FIND_NONE);
	assert_int_equal(rate[1].multiple_of, FIND_NONE);
	assert_int_equal(rates.point, 1);
}

/* Other programs take the processors now and then. */
static void steady_together_where_time_is_not(void **state)
{
	(void)state;
	begin();
	add(0.3, 400, 0.8);
	add(0.6, 100, 0.8);
	add(0.1, 100, -0.8);
	find_choose(&rates);
	assert_int_equal(rates.point, 1);
	assert_int_equal(rate[0].multiple_of, 1);
	assert_false(rate[2].steady);
}

/* Memory is needed for each item, and many times: in no whole number. */
static void what_any_part_calls_is_no_item(void **state)
{
	static const char *const common[] = { ":runtime.mallocgc", "libc.so.6:malloc",
					      ":sync.(*Mutex).Lock",
					      ":=operator new(unsigned long)" };
	static const char *const own[] = { ":main.render", ":mallocate", ":free_all",
					   "py:runtime:step", ":synchronize" };

	(void)state;
	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++) {
			begin();
			add(0.8, 733, 0.02);
			add(0.1, 100, 0.02);
			rate[0].target = (char *)common[i];
			rate[1].target = (char *)own[k];
			find_choose(&rates);
			assert_int_equal(rates.point, 1);
		}
	rates.n = 1;
	find_choose(&rates);
	assert_int_equal(rates.point, 0);
}

/* A thread that waits for a batch does so once for several items. */
static void what_waits_is_no_item(void **state)
{
	(void)state;
	begin();
	add(0.9, 30, 0.02);
	add(0.1, 240, 0.02);
	rate[0].waits = true;
	find_choose(&rates);
	assert_true(rate[0].steady);
	assert_int_equal(rate[1].multiple_of, FIND_NONE);
	assert_int_equal(rates.point, 1);
	rates.n = 1;
	find_choose(&rates);
	assert_int_equal(rates.point, 0);
}

/* Events of a histogram that are steadier than the counter, one that stands, one in bursts, one
 * that grows by 40 at a time. */
static void a_counter_of_a_page(void **state)
{
	static struct find_rate counter[6];
	static const char *const name[] = { "prom:u#bursts_total", "prom:u#wait_seconds",
					    "prom:u#items_total", "prom:u#sizes",
					    "prom:u#stands_total" };
	static const double calls[] = { 100, 100, 100, 100, 0 },
			    swing[] = { 0.8, 0.02, 0.1, 0.01, 0 };

	(void)state;
	begin();
	for (int i = 0; i < 5; i++) {
		counter[i] = (struct find_rate){ .target = (char *)(uintptr_t)name[i] };
		counter[i].events = i == 1 || i == 3;
		for (int s = 0; s < FIND_SLICES; s++)
			counter[i].hits[s] =
				(uint64_t)(calls[i] * (1 + (s % 2 ? swing[i] : -swing[i])));
	}
	counter[5] = (struct find_rate){ .target = (char *)"prom:u#tokens_total" };
	for (int s = 0; s < FIND_SLICES; s++)
		counter[5].hits[s] = s % 2 ? 160 : 120;
	rates.counter = counter;
	rates.n_counters = 6;
	find_choose(&rates);
	assert_int_equal(rates.counter_point, 2);
	assert_int_equal(rates.response_point, 1);
	counter[2].hits[3] = 0;
	find_choose(&rates);
	assert_int_equal(rates.counter_point, 5);
	for (int s = 0; s < FIND_SLICES; s++)
		counter[5].hits[s] = s % 2 ? 40 : 80; /* of twelve requests */
	find_choose(&rates);
	assert_int_equal(rates.counter_point, 3);
	rates.counter = NULL;
	rates.n_counters = 0;
	find_choose(&rates);
	assert_int_equal(rates.counter_point, FIND_NONE);
	assert_int_equal(rates.response_point, FIND_NONE);
}

static void none_is_proposed(void **state)
{
	(void)state;
	begin();
	add(0.9, 0, 0);	 /* a loop that never returns */
	add(0.05, 2, 0); /* too few */
	find_choose(&rates);
	assert_int_equal(rates.point, FIND_NONE);
	assert_true(isnan(rate[0].scatter));
	begin();
	rates.slices = 0; /* ended at once */
	add(0.9, 100, 0);
	find_choose(&rates);
	assert_int_equal(rates.point, FIND_NONE);
	assert_true(isnan(rate[0].per_s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_is_chosen),
		cmocka_unit_test(a_multiple_is_an_inner_function),
		cmocka_unit_test(a_multiple_may_scatter_more_than_its_base),
		cmocka_unit_test(few_items_cut_at_both_ends),
		cmocka_unit_test(chance_is_no_multiple),
		cmocka_unit_test(equal_rates_the_larger_share),
		cmocka_unit_test(steady_together_where_time_is_not),
		cmocka_unit_test(what_any_part_calls_is_no_item),
		cmocka_unit_test(what_waits_is_no_item),
		cmocka_unit_test(a_counter_of_a_page),
		cmocka_unit_test(none_is_proposed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
