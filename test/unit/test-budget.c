/* SPDX-License-Identifier: MIT */
/* beside others */
/* Files that are made to be endless to read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "elf-build.h"
#include "elf/reader.h"
#include "elf/image-priv.h"
#include "elf/symbol.h"

static struct image *open_image(const char *path)
{
	struct sb_err err = { 0 };
	struct image *img = NULL;

	if (image_get(path, path, &img, &err))
		fail_msg("%s", err.what);
	return img;
}

/* A few bytes that unpack to more than is read: an error that names the file, and no memory. */
static void test_packed_bomb(void **state)
{
	char cmd[1024];
	struct symbol_list list;
	struct sb_err err = { 0 };
	struct rusage used;
	struct image *img;
	long before;

	(void)state;
	need_elf("cc", "-O1 -Wl,--build-id", "bomb", "c",
		 "static __attribute__((noinline, used)) int inner(int a) { return a * 7; }\n"
		 "int main(int c, char **v) { (void)v; return inner(c); }\n");
	snprintf(cmd, sizeof(cmd),
		 "cd '%s' && head -c 400M /dev/zero | xz -0 -T2 >z.xz && strip bomb && "
		 "objcopy --add-section .gnu_debugdata=z.xz bomb",
		 build_dir);
	if (system(cmd))
		skip();
	getrusage(RUSAGE_SELF, &used);
	before = used.ru_maxrss;
	img = open_image(build_path("bomb"));
	assert_true(symbol_find(img, "inner", 0, &list, &err) < 0);
	assert_non_null(image_flaw(img));
	image_refuse(img, &err);
	assert_non_null(strstr(err.what, "/bomb: its .gnu_debugdata unpacks to more"));
	image_put(img);
	getrusage(RUSAGE_SELF, &used);
	assert_true(used.ru_maxrss < before + 100 * 1024);
}

/* What has been spent on a file is remembered; when it is too much, no answer about it counts. */
static void test_budget_of_a_file(void **state)
{
	struct symbol_list list;
	struct sb_err err = { 0 };
	struct image *img;

	(void)state;
	need_elf("cc", "-O1 -shared -fPIC", "slow.so", "c", "int one(void) { return 1; }\n");
	img = open_image(build_path("slow.so"));
	assert_int_equal(symbol_find(img, "one", 0, &list, &err), 0);
	symbol_list_free(&list);
	assert_true(img->budget.spent_ns > 0);
	assert_null(image_flaw(img));
	img->budget.spent_ns += BUDGET_NS;
	assert_true(symbol_find(img, "one", 0, &list, &err) < 0);
	assert_non_null(image_flaw(img));
	image_refuse(img, &err);
	assert_non_null(strstr(err.what, "slow.so: reading it takes longer than 10 s"));
	image_put(img);
}

int main(void)
{
	reader_local();
#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, build_setup, build_clean)
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_packed_bomb),
		WITH_DIR(test_budget_of_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
