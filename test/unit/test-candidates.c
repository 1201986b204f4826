/* SPDX-License-Identifier: MIT */
/* Samples: shares and their order, words for a shell, and what is sampled of this very process. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/samples.h"
#include "src/live/candidates-infer.h"

static void shares_are_ordered(void **state)
{
	double few[] = { 2, 1, 1, 2 }, most[] = { 70, 80, 75, 75 }, rest[] = { 28, 19, 24, 23 };
	const double all[] = { 100, 100, 100, 100 };
	struct candidate_tally t[] = { { .function = 7, .in = few, .samples = 6 },
				       { .function = 8, .in = most, .samples = 300 },
				       { .function = 9, .in = rest, .samples = 94 } };

	(void)state;
	assert_int_equal(candidates_rank(t, 3, all, 4), 3);
	assert_int_equal(t[0].function, 8);
	assert_int_equal(t[1].function, 9);
	assert_int_equal(t[2].function, 7);
	assert_true(fabs(t[0].share.est - 0.75) < 1e-12);
	assert_true(t[0].share.lo < 0.75 && t[0].share.hi > 0.75);
}

/* All samples in one function, in each block: the blocks do not scatter, and still it may be 0.99.
 */
static void certain_is_not_exact(void **state)
{
	double in[] = { 50, 50, 50, 50 };
	struct candidate_tally t = { .in = in, .samples = 200 };

	(void)state;
	assert_int_equal(candidates_rank(&t, 1, in, 4), 1);
	assert_true(t.share.est == 1 && t.share.hi == 1);
	assert_true(t.share.lo > 0.97 && t.share.lo < 0.985);
}

static void few_samples_are_none(void **state)
{
	double in[] = { 1, 1, 1, 1 };
	const double all[] = { 1, 1, 1, 1 }, none[] = { 0, 0, 0, 0 };
	double zero[] = { 0, 0, 0, 0 };
	struct candidate_tally t = { .in = in, .samples = 4 }, z = { .in = zero };

	(void)state;
	assert_int_equal(candidates_rank(&t, 1, all, 4), 0);
	assert_int_equal(candidates_rank(&z, 1, none, 4), 0);
	assert_true(isnan(z.share.est));
	assert_int_equal(candidates_rank(NULL, 0, none, 4), 0);
}

static void words_are_quoted(void **state)
{
	static const char *const pair[][2] = {
		{ ":hot", ":hot" },
		{ "libc.so.6:memcpy", "libc.so.6:memcpy" },
		{ "prom:http://127.0.0.1:9/m#a", "prom:http://127.0.0.1:9/m#a" },
		{ ":=f(int)", "':=f(int)'" },
		{ "it's", "'it'\\''s'" },
		{ "", "''" },
		{ "a b;c", "'a b;c'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++) {
		char *word = candidates_word(pair[i][0]);

		assert_string_equal(word, pair[i][1]);
		free(word);
	}
}

/* ---- of this process ---- */

static uint64_t inside, outside;

__attribute__((noinline, noclone)) static void burn(uint64_t ns)
{
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	} while ((uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec -
			 (uint64_t)a.tv_nsec <
		 ns);
}

static void count(void *ctx, pid_t pid, pid_t tid, const uint64_t *ip, size_t n)
{
	uint64_t start = (uint64_t)(uintptr_t)burn;

	(void)ctx;
	(void)tid;
	assert_int_equal(pid, getpid());
	assert_true(n >= 1 && n <= SAMPLES_DEPTH);
	*(ip[0] - start < 1024 ? &inside : &outside) += 1;
}

static void own_samples_are_where_the_time_is(void **state)
{
	struct samples *s = samples_open(1000000);

	(void)state;
	samples_watch(s, getpid());
	if (samples_limit(s)) {
		print_message("%s\n", samples_limit(s)->what);
		samples_close(s);
		skip();
	}
	for (int i = 0; i < 10; i++) {
		burn(30000000);
		samples_drain(s, count, NULL);
	}
	assert_int_equal(samples_lost(s), 0);
	samples_close(s);
	assert_in_range(inside + outside, 150, 400);
	assert_true(inside > 9 * outside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_ordered),
		cmocka_unit_test(certain_is_not_exact),
		cmocka_unit_test(few_samples_are_none),
		cmocka_unit_test(words_are_quoted),
		cmocka_unit_test(own_samples_are_where_the_time_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
