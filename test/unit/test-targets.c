/* SPDX-License-Identifier: MIT */
/* The list of a session's targets: what comes again, what never was, and when a window is open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "src/session/targets.h"

enum { ROOM = 2 };

struct list {
	struct target target[ROOM];
	size_t n;
};

static int enter(struct list *l, const char *text, uint64_t delay_ns, char *thread, size_t *index)
{
	struct spec spec = { .text = (char *)text, .delay_ns = delay_ns, .thread = thread };
	struct sb_err err = { 0 };
	int ret = targets_place(l->target, l->n, ROOM, &spec, index, &err);

	if (ret == 0)
		targets_enter(l->target, &l->n, *index, &spec);
	return ret;
}

static void list_free(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		target_free(&l->target[i]);
}

/* Its old keys would be in force unseen. */
static void test_comes_again(void **state)
{
	struct list l = { 0 };
	size_t i;

	(void)state;
	assert_int_equal(enter(&l, ":f", 5, NULL, &i), 0);
	assert_int_equal(enter(&l, ":f", 7, NULL, &i), -SB_EEXIST);
	l.target[i].removed = true;
	assert_int_equal(enter(&l, ":f", 7, "worker", &i), 0);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.target[i].spec->thread, "worker");
	assert_int_equal(l.target[i].delay_ns, 7);
	assert_true(l.target[i].changed);
	list_free(&l);
}

/* The sites of one that was there before still bear its number: no other target may have it. */
static void test_forgets_only_what_never_was(void **state)
{
	struct list l = { 0 };
	size_t i;

	(void)state;
	assert_int_equal(enter(&l, ":f", 5, NULL, &i), 0);
	targets_forget(l.target, &l.n, i);
	assert_int_equal(l.n, 0);
	assert_int_equal(enter(&l, ":f", 5, NULL, &i), 0);
	l.target[i].removed = true;
	assert_int_equal(enter(&l, ":f", 5, NULL, &i), 0);
	targets_forget(l.target, &l.n, i);
	assert_int_equal(l.n, 1);
	assert_true(l.target[0].removed);
	assert_int_equal(enter(&l, ":g", 5, NULL, &i), 0);
	assert_int_equal(i, 1);
	assert_int_equal(enter(&l, ":h", 5, NULL, &i), -SB_ENOMEM);
	list_free(&l);
}

static void test_window(void **state)
{
	struct spec spec = { .start_ns = 10, .for_ns = 5 };
	struct target t = { .spec = &spec };

	(void)state;
	assert_false(target_in_window(&t, 0, 112));
	assert_false(target_in_window(&t, 100, 109));
	assert_true(target_in_window(&t, 100, 110));
	assert_true(target_in_window(&t, 100, 114));
	assert_false(target_in_window(&t, 100, 115));
	assert_int_equal(target_until_change(&t, 100, 103), 7);
	assert_int_equal(target_until_change(&t, 100, 112), 3);
	assert_true(target_until_change(&t, 100, 115) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_again),
		cmocka_unit_test(test_forgets_only_what_never_was),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
