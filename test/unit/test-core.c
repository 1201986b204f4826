/* SPDX-License-Identifier: MIT */
/* The half of a session that every backend has, on a backend that does nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "src/session/core.h"

enum { ROOM = 2 };

static struct log {
	unsigned int applied, detached;
	uint64_t hits;
	bool refuses; /* add() and remove() fail */
	bool was_open;
} seen;

static int open_nothing(struct session_core *s, struct sb_err *err)
{
	(void)err;
	session_arm(s);
	return 0;
}

static void close_nothing(struct session_core *s)
{
	(void)s;
}

static int attach(struct session_core *s, struct sb_err *err)
{
	if (seen.refuses)
		return err_set(err, SB_EREFUSED, "no");
	session_windows(s, s->attached_ns);
	return 0;
}

static void detach(struct session_core *s)
{
	seen.detached++;
	seen.was_open = s->target[0].open;
}

static int check_spec(struct session_core *s, const struct spec *spec, struct sb_err *err)
{
	(void)s;
	(void)spec;
	(void)err;
	return 0;
}

static int change(struct session_core *s, size_t index, struct sb_err *err)
{
	(void)s;
	(void)index;
	return seen.refuses ? err_set(err, SB_EREFUSED, "no") : 0;
}

static void apply(struct session_core *s, size_t index)
{
	(void)s;
	(void)index;
	seen.applied++;
}

static void enable(struct session_core *s, bool on)
{
	(void)s;
	(void)on;
}

static void counts(struct session_core *s, size_t first, size_t n, struct result_counts *out)
{
	(void)s;
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out[i].hits = first + i == 0 ? seen.hits : 0;
}

static double slowdown(struct session_core *s, size_t index, uint64_t now)
{
	(void)s;
	(void)index;
	(void)now;
	return 0.4;
}

static struct backend table = {
	.name = "nothing",
	.size = sizeof(struct session_core),
	.spare_targets = ROOM,
	.open = open_nothing,
	.close = close_nothing,
	.attach = attach,
	.detach = detach,
	.check_spec = check_spec,
	.add = change,
	.remove = change,
	.apply = apply,
	.counts = counts,
	.slowdown = slowdown,
};

static struct spec specs[2] = {
	{ .text = (char *)":f", .delay_ns = 1000 },
	{ .text = (char *)":g", .delay_ns = 1000 },
};
static struct session_config cfg;
static struct session_core *s;

static int setup(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	memset(&seen, 0, sizeof(seen));
	memset(&cfg, 0, sizeof(cfg));
	table.enable = NULL;
	cfg.targets = (struct spec_list){ .spec = specs, .count = 1 };
	s = session_open(&table, &cfg, &err);
	assert_non_null(s);
	assert_int_equal(session_attach(s, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	session_free(s);
	return 0;
}

static bool is_open(size_t index)
{
	struct session_target t;

	session_state(s, index, &t);
	return t.open;
}

static void test_opens_and_closes(void **state)
{
	(void)state;
	assert_true(is_open(0));
	session_mute(s, 0, true);
	assert_false(is_open(0));
	session_mute(s, 0, false);
	assert_true(is_open(0));
	session_enable(s, false);
	assert_false(is_open(0));
	session_enable(s, true);
	assert_true(is_open(0));
	assert_int_equal(seen.applied, 5);
}

/* A switch of the backend's own: the targets stay as they are, and are not in effect. */
static void test_switch_of_the_backend(void **state)
{
	(void)state;
	table.enable = enable;
	session_enable(s, false);
	assert_false(is_open(0));
	assert_true(s->target[0].open);
	assert_int_equal(seen.applied, 1);
	session_enable(s, true);
	assert_true(is_open(0));
}

static void test_failed_add_leaves_nothing(void **state)
{
	struct sb_err err = { 0 };
	size_t index;

	(void)state;
	seen.refuses = true;
	assert_int_equal(session_add(s, &specs[1], &index, &err), -SB_EREFUSED);
	assert_int_equal(session_targets(s), 1);
	seen.refuses = false;
	assert_int_equal(session_add(s, &specs[1], &index, &err), 0);
	assert_int_equal(index, 1);
	assert_true(is_open(1));
}

/* It is still hooked somewhere: it must not act, and a second removal must be possible. */
static void test_failed_removal_mutes(void **state)
{
	struct sb_err err = { 0 };
	struct session_target t;

	(void)state;
	seen.refuses = true;
	assert_int_equal(session_remove(s, 0, &err), -SB_EREFUSED);
	session_windows(s, s->attached_ns + 1);
	session_state(s, 0, &t);
	assert_false(t.removed);
	assert_false(t.open);
	seen.refuses = false;
	assert_int_equal(session_remove(s, 0, &err), 0);
	session_state(s, 0, &t);
	assert_true(t.removed);
}

/* The window of the session opens with the first hit of a target, which is open before. */
static void test_start_on_a_target(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	session_free(s);
	cfg.targets.count = 2;
	cfg.start_on = (char *)":f";
	cfg.for_ns = 1000;
	s = session_open(&table, &cfg, &err);
	session_windows(s, s->attached_ns);
	assert_true(is_open(0));
	assert_false(is_open(1));
	assert_true(session_left(s, s->attached_ns) == UINT64_MAX);
	seen.hits = 1;
	session_windows(s, s->attached_ns + 10);
	assert_true(is_open(1));
	assert_int_equal(session_left(s, s->attached_ns + 110), 900);
	assert_int_equal(session_left(s, s->attached_ns + 2000), 0);
}

/* Also after an attach that failed; and once only. */
static void test_detach_closes_first(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	session_detach(s);
	session_detach(s);
	assert_int_equal(seen.detached, 1);
	assert_false(seen.was_open);
	session_free(s);
	s = session_open(&table, &cfg, &err);
	seen.refuses = true;
	assert_int_equal(session_attach(s, &err), -SB_EREFUSED);
	assert_int_equal(seen.detached, 2);
}

/* No target delays before the counting alone has shown what its delay would cost. */
static void test_slowdown_is_judged_before_delays(void **state)
{
	const uint64_t ms = 1000000;
	struct sb_err err = { 0 };

	(void)state;
	session_free(s);
	cfg.max_slowdown = 0.5;
	s = session_open(&table, &cfg, &err);
	session_windows(s, s->attached_ns);
	assert_true(s->slow_measuring);
	assert_false(session_slow(s, s->attached_ns + 100 * ms, &err));
	assert_true(s->slow_measuring);
	assert_false(session_slow(s, s->attached_ns + 300 * ms, &err));
	assert_false(s->slow_measuring);
	cfg.max_slowdown = 0.3;
	assert_false(session_slow(s, s->attached_ns + 400 * ms, &err)); /* too soon */
	assert_true(session_slow(s, s->attached_ns + 900 * ms, &err));
	assert_int_equal(err.code, SB_EREFUSED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_opens_and_closes),
		TEST(test_switch_of_the_backend),
		TEST(test_failed_add_leaves_nothing),
		TEST(test_failed_removal_mutes),
		TEST(test_start_on_a_target),
		TEST(test_detach_closes_first),
		TEST(test_slowdown_is_judged_before_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
