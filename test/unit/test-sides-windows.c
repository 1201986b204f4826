/* SPDX-License-Identifier: MIT */
/* What a delay changes of the waits for each futex, from windows whose truth is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "src/live/sides-windows.h"

enum { BLOCKS = 8, WINDOWS = 4 * BLOCKS };

/* Each block: SHAM, the largest dose, a smaller one, and a dose of another target. */
static void windows_make(struct sweep_window *win)
{
	for (int i = 0; i < WINDOWS; i++) {
		win[i] = (struct sweep_window){
			.arm = i % 4 ? ARM_DOSE : ARM_SHAM,
			.target = i % 4 == 0 ? -1 : i % 4 == 3,
			.block = i / 4,
			.dose = i % 4 == 0 ? 0 :
				i % 4 == 2 ? 1 :
					     2,
			.end_ns = 1000 * (uint64_t)(i + 1),
			.items = 100 + i % 3,
		};
	}
}

/* Futex 1: 50 ns an item of the delayed threads, 20 under the largest dose. Futex 2: the other
 * threads wait 30 more then. Futex 3: the same always, but for noise. */
static struct sides_windows *waits(const struct sweep_window *win, size_t *unread)
{
	struct sides_windows *w = sides_windows_open();

	for (size_t i = 0; i < WINDOWS; i++) {
		bool large = i % 4 == 1;
		double noise = i / 4 % 2 ? 1 : -1;

		if (i == *unread)
			continue;
		sides_windows_begin(w, win[i].end_ns);
		sides_windows_read(w, 0);
		sides_windows_read(w, 1);
		for (int half = 0; half < 2; half++) /* of two threads */
			sides_windows_add(w, 0, SIDE_DELAYED, 1,
					  win[i].items / 2 * ((large ? 20 : 50) + noise));
		if (large)
			sides_windows_add(w, 0, SIDE_OTHERS, 2, win[i].items * 30);
		sides_windows_add(w, 0, SIDE_DELAYED, 3,
				  win[i].items * (10 + (large ? noise : -noise)));
		sides_windows_add(w, 1, SIDE_DELAYED, 1, 1e6); /* of another target */
	}
	return w;
}

static void compare(struct sides_about *about, size_t unread, bool unproven)
{
	static struct sweep_window win[WINDOWS];
	struct sweep_target target[2] = { 0 };
	struct sweep_result res = {
		.target = target, .n_targets = 2, .window = win, .n_windows = WINDOWS
	};
	struct sides_windows *w;

	windows_make(win);
	res.gates.unproven = unproven;
	w = waits(win, &unread);
	sides_windows_compare(w, &res, about);
	sides_windows_close(w);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void test_changes(void **state)
{
	struct sides_futex futex[4] = {
		{ .number = 1 }, { .number = 2 }, { .number = 3 }, { .number = 9 }
	};
	struct sides_about about = { .futex = futex, .n_futexes = 4 };
	const struct sides_futex_change *c = &futex[0].change[SIDE_DELAYED];

	(void)state;
	compare(&about, WINDOWS, false);
	assert_true(near(c->sham, 50));
	assert_true(near(c->dose, 20));
	assert_true(near(c->delta, -30));
	assert_true(c->significant && c->lo <= -30 && c->hi >= -30 && c->p_adjusted < 1e-6);
	assert_true(isnan(futex[0].change[SIDE_OTHERS].delta));
	c = &futex[1].change[SIDE_OTHERS];
	assert_true(near(c->sham, 0));
	assert_true(near(c->delta, 30));
	assert_true(c->significant);
	c = &futex[2].change[SIDE_DELAYED];
	assert_true(fabs(c->delta) < 1e-9 && !c->significant && c->lo < -1 && c->hi > 1);
	assert_true(isnan(futex[3].change[SIDE_DELAYED].p_adjusted));
}

/* A window that was not read is left out with its block, and is not one without waits. */
static void test_unread(void **state)
{
	struct sides_futex futex = { .number = 1 };
	struct sides_about about = { .futex = &futex, .n_futexes = 1 };

	(void)state;
	compare(&about, 5, false);
	assert_true(near(futex.change[SIDE_DELAYED].delta, -30));
	assert_true(futex.change[SIDE_DELAYED].significant);
	compare(&about, WINDOWS, true);
	assert_false(futex.change[SIDE_DELAYED].significant); /* the sweep proves nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
