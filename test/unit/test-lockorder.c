/* SPDX-License-Identifier: MIT */
/*
 * Orders of locks from calls: cycles are found, with both places of each order; what is no
 * deadlock, or rests on a set of held locks that may be wrong, is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "trace/lockorder.h"

enum { A = 0xa00, B = 0xb00, C = 0xc00, D = 0xd00, PID = 7 };

static struct lockorder *o;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	o = lockorder_new();
	now = 1000;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lockorder_free(o);
	return 0;
}

static void call_of(int32_t pid, uint32_t thread, enum lock_op op, uint64_t lock, const char *at,
		    int result, bool known)
{
	struct trace_value value[] = {
		{ "lock", VALUE_PTR, known, lock, NULL },
		{ "at", VALUE_STR, at, 0, at },
		{ "result", VALUE_I32, result >= 0, (uint64_t)(result > 0 ? result : 0), NULL },
	};
	struct trace_span span = {
		.start_ns = now, .dur_ns = 5, .thread = thread, .n_values = 3, .value = value
	};

	now += 10;
	lockorder_call(o, op, pid, true, &span);
}

static void call(uint32_t thread, enum lock_op op, uint64_t lock, const char *at)
{
	call_of(PID, thread, op, lock, at, op == LOCK_RELEASE ? -1 : 0, true);
}

static void take(uint32_t thread, uint64_t lock, const char *at)
{
	call(thread, LOCK_TAKE, lock, at);
}

static void release(uint32_t thread, uint64_t lock)
{
	call(thread, LOCK_RELEASE, lock, NULL);
}

/* Takes the first and then the second, and releases both. */
static void both(uint32_t thread, uint64_t first, uint64_t second, const char *at)
{
	char one[32], two[32];

	snprintf(one, sizeof(one), "%s+1", at);
	snprintf(two, sizeof(two), "%s+2", at);
	take(thread, first, one);
	take(thread, second, two);
	release(thread, second);
	release(thread, first);
}

static size_t found(void)
{
	lockorder_finish(o, NULL);
	assert_int_equal(o->unsearched, false);
	assert_int_equal(o->left_out, 0);
	return o->n_cycles;
}

static void test_inversion(void **state)
{
	const struct lockorder_step *s;

	(void)state;
	both(1, A, B, "forward");
	both(1, A, B, "forward");
	both(3, A, B, "forward");
	both(2, B, A, "backward");
	assert_int_equal(found(), 1);
	assert_int_equal(o->cycle[0].n, 2);
	assert_int_equal(o->cycle[0].pid, PID);
	assert_false(o->cycle[0].one_thread);
	s = o->cycle[0].step;
	assert_int_equal(s[0].held, A);
	assert_int_equal(s[0].taken, B);
	assert_string_equal(s[0].held_at, "forward+1");
	assert_string_equal(s[0].taken_at, "forward+2");
	assert_int_equal(s[0].times, 3);
	assert_int_equal(s[0].thread, 1);
	assert_true(s[0].several);
	assert_int_equal(s[1].held, B);
	assert_int_equal(s[1].taken, A);
	assert_string_equal(s[1].held_at, "backward+1");
	assert_string_equal(s[1].taken_at, "backward+2");
	assert_int_equal(s[1].times, 1);
	assert_int_equal(s[1].thread, 2);
	assert_false(s[1].several);
	assert_int_equal(o->locks, 2);
	assert_int_equal(o->orders, 2);
	assert_int_equal(o->calls, 16);
}

/* One after the other is no order, and so is the same order everywhere. */
static void test_none(void **state)
{
	(void)state;
	both(1, A, B, "f");
	both(2, A, B, "g");
	both(2, B, C, "g");
	take(1, B, "h");
	release(1, B);
	take(1, A, "h");
	release(1, A);
	assert_int_equal(found(), 0);
	assert_int_equal(o->orders, 3);
}

static void test_three(void **state)
{
	(void)state;
	both(1, A, B, "f");
	both(2, B, C, "g");
	both(3, C, A, "h");
	both(3, C, D, "i");
	assert_int_equal(found(), 1);
	assert_int_equal(o->cycle[0].n, 3);
	assert_int_equal(o->cycle[0].step[0].held, A);
	assert_int_equal(o->cycle[0].step[1].held, B);
	assert_int_equal(o->cycle[0].step[2].held, C);
	assert_int_equal(o->cycle[0].step[2].taken, A);
}

/* A cycle of which a part is one already says nothing new. */
static void test_part(void **state)
{
	(void)state;
	both(1, A, B, "f");
	both(2, B, A, "g");
	both(2, B, C, "h");
	both(3, C, A, "i");
	assert_int_equal(found(), 1);
	assert_int_equal(o->cycle[0].n, 2);
}

/* No call waits in trylock; but the lock that it got makes others wait. */
static void test_try(void **state)
{
	(void)state;
	both(1, A, B, "f");
	take(2, B, "g+1");
	call(2, LOCK_TRY, A, "g+2");
	release(2, A);
	release(2, B);
	call_of(PID, 2, LOCK_TRY, B, "h+1", EBUSY, true); /* it did not get it */
	take(2, A, "h+2");
	release(2, A);
	assert_int_equal(found(), 0);
	teardown(NULL);
	setup(NULL);
	both(1, A, B, "f");
	call(2, LOCK_TRY, B, "g+1");
	take(2, A, "g+2");
	release(2, A);
	release(2, B);
	assert_int_equal(found(), 1);
}

/* Another lock at the same address, whatever the order in which the calls of threads come. */
static void test_reuse(void **state)
{
	uint64_t end;

	(void)state;
	both(1, A, B, "f");
	call(1, LOCK_FORGET, A, NULL);
	both(2, B, A, "g");
	assert_int_equal(found(), 0);
	assert_int_equal(o->orders, 2);
	teardown(NULL);
	setup(NULL);
	both(1, A, B, "f");
	end = now;
	now += 1000;
	both(2, B, A, "g");
	now = end;
	call(1, LOCK_FORGET, A, NULL);
	assert_int_equal(found(), 0);
	teardown(NULL);
	setup(NULL);
	call(1, LOCK_FORGET, A, NULL); /* an initialization */
	both(1, A, B, "f");
	both(2, B, A, "g");
	assert_int_equal(found(), 1);
}

/* What was seen on both sides of the end of a lock is of neither. */
static void test_crossed(void **state)
{
	(void)state;
	both(1, A, B, "f");
	now += 1000;
	both(1, A, B, "f");
	both(2, B, A, "g");
	now = 1200;
	call(3, LOCK_FORGET, A, NULL);
	assert_int_equal(found(), 0);
	assert_int_equal(o->crossed, 1);
}

/* A lock that was destroyed while it was held, as far as is known, is not held any more. */
static void test_stale(void **state)
{
	(void)state;
	both(1, B, A, "f");
	take(2, A, "g");
	call(2, LOCK_FORGET, A, NULL);
	take(2, B, "h");
	release(2, B);
	take(2, A, "i");
	release(2, A);
	assert_int_equal(found(), 0);
	assert_int_equal(o->orders, 1);
}

static void test_gate(void **state)
{
	(void)state;
	take(1, C, "f");
	both(1, A, B, "f");
	release(1, C);
	take(2, C, "g");
	both(2, B, A, "g");
	release(2, C);
	assert_int_equal(found(), 0);
	teardown(NULL);
	setup(NULL);
	take(1, C, "f");
	both(1, A, B, "f");
	release(1, C);
	both(2, B, A, "g"); /* without it */
	assert_int_equal(found(), 1);
	teardown(NULL);
	setup(NULL);
	call(1, LOCK_SHARE, C, "f"); /* which several threads may have */
	both(1, A, B, "f");
	release(1, C);
	call(2, LOCK_SHARE, C, "g");
	both(2, B, A, "g");
	release(2, C);
	assert_int_equal(found(), 1);
}

/* Readers do not wait for readers. */
static void test_readers(void **state)
{
	(void)state;
	take(1, A, "f");
	call(1, LOCK_SHARE, B, "f");
	release(1, B);
	release(1, A);
	call(2, LOCK_SHARE, B, "g");
	take(2, A, "g");
	release(2, A);
	release(2, B);
	assert_int_equal(found(), 0);
	teardown(NULL);
	setup(NULL);
	both(1, A, B, "f");
	call(2, LOCK_SHARE, B, "g");
	take(2, A, "g");
	release(2, A);
	release(2, B);
	assert_int_equal(found(), 1);
	assert_false(o->cycle[0].step[0].taken_shared);
	assert_true(o->cycle[0].step[1].held_shared);
	teardown(NULL);
	setup(NULL);
	take(1, A, "f");
	call(1, LOCK_SHARE, B, "f"); /* waits for the writer */
	release(1, B);
	release(1, A);
	both(2, B, A, "g");
	assert_int_equal(found(), 1);
	assert_true(o->cycle[0].step[0].taken_shared);
}

/* pthread_cond_wait() takes its mutex again, while it holds the one that was taken after it. */
static void test_wait(void **state)
{
	(void)state;
	take(1, A, "f+1");
	take(1, B, "f+2");
	call(1, LOCK_WAIT, A, "f+3");
	release(1, A);
	release(1, B);
	assert_int_equal(found(), 1);
	assert_true(o->cycle[0].one_thread);
	assert_string_equal(o->cycle[0].step[1].taken_at, "f+3");
	teardown(NULL);
	setup(NULL);
	take(1, A, "f+1");
	take(1, B, "f+2");
	call_of(PID, 1, LOCK_WAIT, A, "f+3", ETIMEDOUT, true);
	call_of(PID, 1, LOCK_WAIT, A, "f+4", EPERM, true); /* it has not waited */
	release(1, A);
	release(1, B);
	assert_int_equal(found(), 1);
	teardown(NULL);
	setup(NULL);
	take(1, B, "f+1");
	take(1, A, "f+2");
	call(1, LOCK_WAIT, A, "f+3");
	call_of(PID, 1, LOCK_WAIT, A, "f+3", ETIMEDOUT, true);
	release(1, A);
	release(1, B);
	assert_int_equal(found(), 0);
}

static void test_recursive(void **state)
{
	(void)state;
	take(1, A, "f");
	take(1, A, "f");
	release(1, A);
	take(1, B, "f");
	release(1, B);
	release(1, A);
	both(2, B, A, "g");
	assert_int_equal(found(), 1);
}

/* Released by another thread: who holds it is not known from then on. */
static void test_odd(void **state)
{
	(void)state;
	both(1, A, C, "f");
	take(1, A, "f");
	release(2, A);
	take(1, B, "f"); /* A is not held */
	release(1, B);
	both(2, B, A, "g");
	assert_int_equal(found(), 0);
	assert_int_equal(o->odd, 1);
}

/* A release that the trace lacks: the next one that takes it, of another thread, shows that. */
static void test_lacking(void **state)
{
	(void)state;
	both(1, A, C, "f");
	take(1, A, "f"); /* and releases it */
	now += 5000;
	take(2, A, "g");
	now += 5000;
	take(1, B, "h");
	release(1, B);
	both(3, B, A, "i");
	assert_int_equal(found(), 0);
	assert_int_equal(o->odd, 1);
	teardown(NULL);
	setup(NULL);
	both(1, A, C, "f");
	take(1, A, "f"); /* and releases it */
	now += 5000;
	both(2, A, C, "g");
	now += 5000;
	both(1, A, C, "f"); /* not again, as of a recursive one */
	take(1, B, "h");
	release(1, B);
	both(3, B, A, "i");
	assert_int_equal(found(), 0);
	assert_int_equal(o->odd, 1);
}

/* Held since before the trace: its release is no sign of anything. */
static void test_before(void **state)
{
	(void)state;
	take(1, B, "f");
	release(1, B);
	release(1, A);
	both(1, A, B, "f");
	both(2, B, A, "g");
	assert_int_equal(found(), 1);
	assert_int_equal(o->odd, 0);
}

/* Where no release was recorded, each lock would be held for ever. */
static void test_unreleased(void **state)
{
	(void)state;
	take(1, A, "f");
	take(1, B, "f");
	take(2, B, "g");
	take(2, A, "g");
	assert_int_equal(found(), 0);
	assert_int_equal(o->unreleased, 2);
}

static void test_unknown(void **state)
{
	(void)state;
	both(1, A, B, "f");
	take(2, B, "g");
	call_of(PID, 2, LOCK_RELEASE, 0, NULL, -1, false); /* B, which the trace does not know */
	take(2, A, "g");
	release(2, A);
	call_of(PID, 2, LOCK_TAKE, B, "h", -1, true); /* its result is not known */
	take(2, A, "h");
	release(2, A);
	release(2, B); /* it had it */
	call_of(PID, 3, LOCK_TRY, B, "i", -1, true);
	take(3, A, "i"); /* and has not got it */
	release(3, A);
	take(3, B, "i");
	release(3, B);
	assert_int_equal(found(), 0);
	assert_int_equal(o->unknown, 3);
	assert_int_equal(o->odd, 0);
	assert_int_equal(o->orders, 1);
}

static void test_missing(void **state)
{
	(void)state;
	both(1, A, B, "f");
	both(2, B, A, "g");
	lockorder_finish(o, "calls were lost");
	assert_int_equal(o->n_cycles, 0);
	assert_string_equal(o->missing, "calls were lost");
}

/* A track may be of several threads, and other processes have other locks. */
static void test_apart(void **state)
{
	struct trace_value value = { "lock", VALUE_PTR, true, B, NULL };
	struct trace_span span = { .start_ns = 1, .thread = 9, .n_values = 1, .value = &value };

	(void)state;
	both(1, A, B, "f");
	lockorder_call(o, LOCK_TAKE, PID, false, &span);
	value.value = A;
	lockorder_call(o, LOCK_TAKE, PID, false, &span);
	call_of(PID + 1, 2, LOCK_TAKE, B, "g", 0, true);
	call_of(PID + 1, 2, LOCK_TAKE, A, "g", 0, true);
	call_of(PID + 1, 2, LOCK_RELEASE, A, NULL, -1, true);
	call_of(PID + 1, 2, LOCK_RELEASE, B, NULL, -1, true);
	lockorder_process(o, PID); /* an exec */
	both(3, B, A, "h");
	assert_int_equal(found(), 0);
	assert_int_equal(o->unknown, 2);
}

/* A hundred objects with the same mistake are one. */
static void test_alike(void **state)
{
	(void)state;
	both(2, D, C, "init");
	both(2, C, D, "init");
	for (uint64_t i = 0; i < 100; i++) {
		both(1, 0x10000 + i * 64, 0x20000 + i * 64, "f");
		both(2, 0x20000 + i * 64, 0x10000 + i * 64, "g");
	}
	assert_int_equal(found(), 2);
	assert_int_equal(o->cycle[0].alike, 99);
	assert_false(o->cycle[0].one_thread);
	assert_true(o->cycle[1].one_thread); /* the less likely one comes last */
	assert_int_equal(o->cycle[1].alike, 0);
}

/* Known of one thread at first, then of two. */
static void test_better(void **state)
{
	(void)state;
	both(1, A, B, "init");
	both(1, B, A, "init");
	both(1, A, B, "f");
	both(2, B, A, "g");
	assert_int_equal(found(), 1);
	assert_false(o->cycle[0].one_thread);
}

/* Many locks in one order, and none of the possible paths is walked for long. */
static void test_many(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 24; i++)
		for (uint64_t k = i + 1; k < 24; k++)
			both(1, 0x1000 + i, 0x1000 + k, "f");
	assert_int_equal(found(), 0);
	assert_int_equal(o->orders, 24 * 23 / 2);
}

/* Such a set has no room for all of them, and is right again once they are released. */
static void test_full(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		call(1, LOCK_TRY, 0x1000 + i, "f");
	for (uint64_t i = 40; i--;)
		release(1, 0x1000 + i);
	both(1, A, B, "f");
	both(2, B, A, "g");
	lockorder_finish(o, NULL);
	assert_int_equal(o->n_cycles, 1);
	assert_int_equal(o->left_out, 8);
	assert_int_equal(o->odd, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(inversion), TEST(none),	  TEST(three),	 TEST(part),   TEST(try),
		TEST(reuse),	 TEST(crossed),	  TEST(stale),	 TEST(gate),   TEST(readers),
		TEST(wait),	 TEST(recursive), TEST(odd),	 TEST(before), TEST(unreleased),
		TEST(unknown),	 TEST(missing),	  TEST(apart),	 TEST(alike),  TEST(better),
		TEST(many),	 TEST(full),	  TEST(lacking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
