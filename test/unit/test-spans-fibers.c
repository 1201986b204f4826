/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * How long calls take on stacks that threads hand to one another. A thread that left a call by
 * swapcontext() takes what it calls next on a deeper stack for a part of that call. Another thread
 * may meanwhile return from it, and begin the next one in the same place: that one contains nothing
 * of the first thread's.
 */
#include <pthread.h>
#include <ucontext.h>
#include "timed.h"

enum { STACK = 256 << 10, CHILDREN = 200 };

static struct timed timed;
static ucontext_t upper, lower, thread_a, thread_b;
static ucontext_t *leave_to; /* upper's: the thread that runs it */
static struct sb_page_span before;
static bool second_first; /* it begins before the call on the lower stack does */
static int second_began, lower_began, children_made, looked, lower_closed;

static void await(const int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void reach(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void call(int i, void (*inside)(void *))
{
	assert_ptr_equal(timed_function(&timed, i)(NULL, inside), NULL);
}

static struct sb_page_span sum_of(int i)
{
	int slots;

	return timed_sum(&timed, i, &slots);
}

static void nothing(void *ctx)
{
	(void)ctx;
}

static void leaves(void *ctx)
{
	(void)ctx;
	swapcontext(&upper, leave_to);
}

static void spans_the_end_of_the_other(void *ctx)
{
	(void)ctx;
	reach(&second_began);
	await(&children_made);
	before = sum_of(0);
	reach(&looked);
	await(&lower_closed);
}

/* Two calls in the same place: the first is left by one thread, and ended by another. */
static void on_upper(void)
{
	call(0, leaves);
	call(0, spans_the_end_of_the_other);
	swapcontext(&upper, leave_to);
}

static void *resumes(void *unused)
{
	(void)unused;
	if (!second_first)
		await(&lower_began);
	leave_to = &thread_b;
	swapcontext(&thread_b, &upper);
	return NULL;
}

static void meanwhile(void *ctx)
{
	(void)ctx;
	reach(&lower_began);
	for (int i = 0; i < CHILDREN; i++)
		call(0, nothing);
	reach(&children_made);
	await(&looked);
}

static void on_lower(void)
{
	call(1, meanwhile);
	reach(&lower_closed);
	swapcontext(&lower, &thread_a);
}

static void on_stack(ucontext_t *u, char *stack, void (*entry)(void))
{
	getcontext(u);
	u->uc_stack.ss_sp = stack;
	u->uc_stack.ss_size = STACK;
	u->uc_link = NULL;
	makecontext(u, entry, 0);
}

/* Calls on the upper stack, then on the lower one, each by swapcontext() from here. */
static char *begin_stacks(void (*upper_entry)(void), void (*lower_entry)(void))
{
	char *stacks = timed_memory(2 * STACK, 0);

	timed_make(&timed, arch->thread_pointer_readable());
	on_stack(&lower, stacks, lower_entry);
	on_stack(&upper, stacks + STACK, upper_entry);
	leave_to = &thread_a;
	swapcontext(&thread_a, &upper); /* into the first call, and out of it in another way */
	return stacks;
}

static void end_stacks(char *stacks)
{
	timed_free(&timed);
	munmap(stacks, 2 * STACK);
}

/* Since `before`: one call, which made none. */
static void second_call_alone(void)
{
	struct sb_page_span after = sum_of(0);

	assert_int_equal(after.calls - before.calls, 1);
	assert_int_equal(after.own_ticks - before.own_ticks, after.ticks - before.ticks);
	assert_true(after.ticks > before.ticks);
	assert_int_equal(sum_of(1).calls, 1);
	assert_int_equal(timed.calls->thread[0].lost, 1);
}

static void by_another_thread(bool first)
{
	pthread_t thread;
	char *stacks;

	second_first = first;
	second_began = lower_began = children_made = looked = lower_closed = 0;
	stacks = begin_stacks(on_upper, on_lower);
	assert_int_equal(pthread_create(&thread, NULL, resumes, NULL), 0);
	if (first)
		await(&second_began);
	swapcontext(&thread_a, &lower);
	pthread_join(thread, NULL);
	assert_int_equal(before.calls, 1 + CHILDREN);
	second_call_alone();
	end_stacks(stacks);
}

static void test_of_another_thread(void **state)
{
	(void)state;
	if (!arch->thread_pointer_readable())
		skip(); /* then no call has a parent */
	by_another_thread(true);
	by_another_thread(false);
}

static void ends_the_upper_call(void *ctx)
{
	(void)ctx;
	leave_to = &lower;
	swapcontext(&lower, &upper);
}

static void on_lower_alone(void)
{
	call(1, ends_the_upper_call);
	before = sum_of(0);
	leave_to = &thread_a;
	swapcontext(&lower, &upper);
}

/* The calls are left and resumed by one thread: the second one begins within the lower one. */
static void on_upper_alone(void)
{
	call(0, leaves);
	call(0, leaves);
	swapcontext(&upper, leave_to);
}

static void test_that_began_later(void **state)
{
	char *stacks;

	(void)state;
	if (!arch->thread_pointer_readable())
		skip();
	stacks = begin_stacks(on_upper_alone, on_lower_alone);
	swapcontext(&thread_a, &lower);
	second_call_alone();
	end_stacks(stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_another_thread),
		cmocka_unit_test(test_that_began_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
