/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "elf-build.h"
#include "elf/recall.h"

#define LIBRARY "__attribute__((noinline)) int %s(int a) { return a * 7; }\n"

static void build(const char *function)
{
	char source[256];

	snprintf(source, sizeof(source), LIBRARY, function);
	if (!build_elf("cc", "-shared -fPIC -g", "lib.so", "c", source))
		skip();
}

/* As a session does: the image is not held in between. */
static int find(const char *symbol, struct sb_err *err)
{
	struct resolve_request req = { .kind = RESOLVE_SYMBOL, .symbol = symbol };
	struct symbol_list list;
	struct image *img;
	int ret;

	assert_int_equal(image_get(build_path("lib.so"), "lib.so", &img, NULL), 0);
	ret = recall_find(img, &req, &list, err);
	if (ret == 0) {
		assert_int_equal(list.count, 1);
		assert_string_equal(list.sym[0].name, symbol);
		assert_ptr_equal(list.img, img);
		symbol_list_free(&list);
	}
	image_put(img);
	return ret;
}

static void test_an_answer_is_the_same_again(void **state)
{
	(void)state;
	build("first");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(find("first", NULL), 0);
		assert_int_equal(find("second", NULL), -SB_ENOSYMBOL);
	}
}

/* What was there before is no answer, also where its times have been set back. */
static void test_a_changed_file_is_searched_anew(void **state)
{
	struct timespec times[2];
	struct stat st;

	(void)state;
	build("first");
	assert_int_equal(find("first", NULL), 0);
	assert_int_equal(find("other", NULL), -SB_ENOSYMBOL);
	assert_int_equal(stat(build_path("lib.so"), &st), 0);
	build("other");
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, build_path("lib.so"), times, 0), 0);
	assert_int_equal(find("other", NULL), 0);
	assert_int_equal(find("first", NULL), -SB_ENOSYMBOL);
}

/* A failure that is shown has its text, also where the answer was known without. */
static void test_an_error_keeps_its_text(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	build("first");
	assert_int_equal(find("firsd", NULL), -SB_ENOSYMBOL);
	assert_int_equal(find("firsd", &err), -SB_ENOSYMBOL);
	assert_non_null(strstr(err.what, "firsd"));
	assert_non_null(strstr(err.hint, "first"));
}

static void test_a_line_is_not_a_name(void **state)
{
	struct resolve_request line = { .kind = RESOLVE_LINE, .symbol = "lib.so.c", .line = 1 };
	struct symbol_list list;
	struct image *img;

	(void)state;
	build("first");
	assert_int_equal(image_get(build_path("lib.so"), "lib.so", &img, NULL), 0);
	for (int i = 0; i < 2; i++) {
		line.line = 1;
		assert_int_equal(recall_find(img, &line, &list, NULL), 0);
		symbol_list_free(&list);
		line.line = 9;
		assert_int_not_equal(recall_find(img, &line, &list, NULL), 0);
	}
	image_put(img);
	assert_int_not_equal(find("lib.so.c", NULL), 0);
}

int main(void)
{
#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, build_setup, build_clean)
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_an_answer_is_the_same_again),
		WITH_DIR(test_a_changed_file_is_searched_anew),
		WITH_DIR(test_an_error_keeps_its_text),
		WITH_DIR(test_a_line_is_not_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
