/* SPDX-License-Identifier: MIT */
/* Names of handles: each as long as it is known to have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "src/session/inject/kernel-names.h"

static struct kernel_names k;

static uint32_t name(const char *text, size_t len)
{
	bool fresh;

	return kernel_name(&k, text, len, &fresh);
}

static void set(pid_t pid, uint64_t handle, uint64_t module, uint64_t from, uint32_t number)
{
	kernel_names_set(&k, &(struct kernel_handle){ .pid = pid,
						      .handle = handle,
						      .module = module,
						      .from = from,
						      .name = number });
}

static uint32_t at(pid_t pid, uint64_t handle, uint64_t ticks)
{
	const struct kernel_handle *h = kernel_names_find(&k, pid, handle, ticks);

	return h ? h->name : 0;
}

static void test_names(void **state)
{
	bool fresh;

	(void)state;
	assert_int_equal(kernel_name(&k, "one", 3, &fresh), 1);
	assert_true(fresh);
	assert_int_equal(kernel_name(&k, "one!", 4, &fresh), 2);
	assert_true(fresh);
	assert_int_equal(kernel_name(&k, "one and more", 3, &fresh), 1);
	assert_false(fresh);
	assert_string_equal(k.name[0], "one");
	kernel_names_free(&k);
	assert_int_equal(at(1, 2, 3), 0);
}

static void test_times(void **state)
{
	uint32_t a = name("a", 1), b = name("b", 1);

	(void)state;
	set(10, 0x1000, 7, 100, a);
	assert_int_equal(at(10, 0x1000, 99), 0);
	assert_int_equal(at(10, 0x1000, 100), a);
	assert_int_equal(at(11, 0x1000, 100), 0);
	assert_int_equal(at(10, 0x1001, 100), 0);
	set(10, 0x1000, 7, 200, a);
	assert_int_equal(at(10, 0x1000, 150), a);
	set(10, 0x1000, 7, 300, b);
	assert_int_equal(at(10, 0x1000, 250), 0);
	assert_int_equal(at(10, 0x1000, 300), b);
	set(10, 0x1000, 7, 250, a);
	assert_int_equal(at(10, 0x1000, 260), 0);
	assert_int_equal(at(10, 0x1000, 300), b);
	set(10, 0x1000, 7, 280, b);
	assert_int_equal(at(10, 0x1000, 285), b);
	kernel_names_free(&k);
}

static void test_unload(void **state)
{
	uint32_t a = name("a", 1);

	(void)state;
	set(10, 1, 7, 100, a);
	set(10, 2, 8, 100, a);
	set(11, 1, 7, 100, a);
	kernel_names_unload(&k, 10, 7);
	assert_int_equal(at(10, 1, 200), 0);
	assert_int_equal(at(10, 2, 200), a);
	assert_int_equal(at(11, 1, 200), a);
	set(10, 1, 9, 300, a);
	assert_int_equal(at(10, 1, 200), 0);
	assert_int_equal(at(10, 1, 300), a);
	kernel_names_unload(&k, 10, 0);
	assert_int_equal(at(10, 1, 400) + at(10, 2, 400), 0);
	assert_int_equal(at(11, 1, 400), a);
	kernel_names_free(&k);
}

/* An address has its number from the beginning, whatever is unloaded; a handle's name replaces it.
 */
static void test_addresses(void **state)
{
	uint32_t a = name("a", 1), number = kernel_name_number(&k);
	struct kernel_handle *h;

	(void)state;
	assert_int_equal(number, a + 1);
	assert_int_equal(name("b", 1), number + 1);
	assert_null(kernel_names_address(&k, 10, 0x1000));
	kernel_names_set(
		&k,
		&(struct kernel_handle){
			.pid = 10, .handle = 0x1000, .name = number, .change = 3, .mapped = true });
	assert_int_equal(at(10, 0x1000, 100), 0);
	kernel_names_unload(&k, 10, 7);
	h = kernel_names_address(&k, 10, 0x1000);
	assert_int_equal(h->name, number);
	assert_int_equal(h->change, 3);
	kernel_names_unload(&k, 10, 0);
	assert_int_equal(h->name, number);
	assert_int_not_equal(h->change, 3);
	set(10, 0x1000, 7, 200, a);
	assert_int_equal(at(10, 0x1000, 200), a);
	assert_int_equal(kernel_names_address(&k, 10, 0x1000)->change, 0);
	kernel_names_free(&k);
}

static void test_many(void **state)
{
	uint32_t a = name("a", 1);

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		set((pid_t)(i % 7), i * 4096, i, i, a);
	for (uint64_t i = 0; i < 10000; i++) {
		assert_int_equal(at((pid_t)(i % 7), i * 4096, i), a);
		assert_int_equal(at((pid_t)((i + 1) % 7), i * 4096, i), 0);
	}
	kernel_names_free(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),  cmocka_unit_test(test_times),
		cmocka_unit_test(test_unload), cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
