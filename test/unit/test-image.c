/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "elf-build.h"
#include "elf/image.h"
#include "elf/mapping.h"
#include "elf/symbol.h"

#define SOURCE                                         \
	"static int hidden(int x) { return x * 3; }\n" \
	"int (*pointer)(int) = hidden;\n"              \
	"int first(int x) { return x + 1; }\n"         \
	"int second(int x) { return x + 2; }\n"        \
	"int data_object = 7;\n"
#define LIB_FLAGS "-O1 -g0 -fPIC -shared -falign-functions=64 -Wl,-soname,libunit.so.3"

static struct image *open_image(const char *path)
{
	struct sb_err err = { 0 };
	struct image *img = NULL;

	if (image_get(path, path, &img, &err))
		fail_msg("%s", err.what);
	return img;
}

static uint64_t vaddr_of(struct image *img, const char *name)
{
	struct sb_err err = { 0 };
	struct symbol_list list;
	uint64_t vaddr;

	if (symbol_find(img, name, 0, &list, &err))
		fail_msg("%s", err.what);
	assert_int_equal(list.count, 1);
	vaddr = list.sym[0].vaddr;
	symbol_list_free(&list);
	return vaddr;
}

static void test_what_a_library_says_of_itself(void **state)
{
	struct image *img;
	struct image_segment seg[4];

	(void)state;
	need_elf("cc", LIB_FLAGS " -Wl,--build-id=0x0123456789abcdef", "lib.so", "c", SOURCE);
	img = open_image(build_path("lib.so"));
	assert_string_equal(image_name(img), build_path("lib.so"));
	assert_string_equal(image_soname(img), "libunit.so.3");
	assert_string_equal(image_build_id(img), "0123456789abcdef");
	assert_string_equal(image_interp(img), "");
	assert_true(image_is_pic(img));
	assert_false(image_has_textrel(img));
	assert_false(image_is_go(img));
	assert_true(image_text(img, seg, 4) >= 1);
	assert_true(seg[0].size > 0 && seg[0].bytes != NULL);
	image_put(img);
}

static void test_one_file_is_one_image(void **state)
{
	struct image *a, *b, *c;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	a = open_image(build_path("lib.so"));
	assert_int_equal(link(build_path("lib.so"), build_path("other.so")), 0);
	b = open_image(build_path("other.so"));
	c = open_image("/proc/self/exe");
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	image_put(a);
	assert_string_equal(image_soname(b), "libunit.so.3");
	image_put(b);
	image_put(c);
	image_put(NULL);
}

/* The path by which a file was found may lead elsewhere later; its own path may not. */
static void test_the_path_of_the_very_file(void **state)
{
	struct image *img;
	struct stat parsed, st;
	uint64_t inode, first, second;
	uint32_t dev;
	char own[64];

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	assert_int_equal(stat(build_path("lib.so"), &parsed), 0);
	img = open_image(build_path("lib.so"));
	need_elf("cc", LIB_FLAGS " -DOTHER", "new.so", "c", SOURCE);
	assert_int_equal(rename(build_path("new.so"), build_path("lib.so")), 0);
	assert_true(image_own_path(img, own, sizeof(own)));
	assert_null(strstr(own, "self"));
	assert_int_equal(stat(own, &st), 0);
	assert_int_equal(st.st_ino, parsed.st_ino);
	assert_true(image_mapped_as(img, &dev, &inode));
	assert_int_equal(inode, parsed.st_ino);
	first = vaddr_of(img, "first");
	second = vaddr_of(img, "second");
	assert_true(image_is_entry(img, first) && image_is_entry(img, second));
	assert_false(image_is_entry(img, first + 1));
	assert_false(image_is_entry(img, vaddr_of(img, "hidden") - 1));
	assert_false(image_is_entry(img, 0));
	image_put(img);
	assert_int_equal(stat(own, &st), -1);
}

/* The owner of a file may cut it short while it is read; that is an error, and no SIGBUS. */
static void test_a_file_cut_short_while_it_is_held(void **state)
{
	struct sb_err err = { 0 };
	struct image *img, *anew;
	struct symbol_list list;
	uint64_t first, start, end;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	img = open_image(build_path("lib.so"));
	first = vaddr_of(img, "first");
	assert_null(image_flaw(img));
	assert_int_equal(truncate(build_path("lib.so"), 0), 0);
	image_done_reading(img);
	symbol_find(img, "second", 0, &list, &err);
	image_function_at(img, first, &start, &end);
	assert_non_null(image_flaw(img));
	assert_int_equal(image_refuse(img, &err), -SB_ENOELF);
	assert_non_null(strstr(err.what, "lib.so: it was truncated"));
	assert_int_equal(image_get(build_path("lib.so"), "lib.so", &anew, &err), -SB_ENOELF);
	/* Written anew, as by cp: what was read before does not come back by it. */
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	anew = open_image(build_path("lib.so"));
	assert_ptr_not_equal(anew, img);
	assert_int_equal(vaddr_of(anew, "first"), first);
	assert_null(image_flaw(anew));
	image_put(anew);
	image_put(img);
}

/* A string that loses its end while it is looked at ends behind the file. */
static void test_zeros_follow_the_file(void **state)
{
	struct mapping m;
	char text[8192];
	int fd = open(build_path("text"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	assert_true(mapping_open(&m, fd, sizeof(text)));
	close(fd);
	assert_int_equal(strlen((const char *)m.base), sizeof(text));
	assert_int_equal(truncate(build_path("text"), 4096), 0);
	assert_int_equal(strlen((const char *)m.base), 4096);
	assert_true(m.torn);
	mapping_close(&m);
	mapping_close(&m);
}

static void test_functions_from_symbols(void **state)
{
	struct image *img;
	uint64_t first, second, hidden, start, end;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	img = open_image(build_path("lib.so"));
	first = vaddr_of(img, "first");
	second = vaddr_of(img, "second");
	hidden = vaddr_of(img, "hidden");
	assert_true(image_function_at(img, first, &start, &end));
	assert_int_equal(start, first);
	assert_true(end > first && end <= second);
	assert_true(image_function_at(img, end - 1, &start, &end));
	assert_int_equal(start, first);
	assert_true(image_function_at(img, hidden + 1, &start, &end));
	assert_int_equal(start, hidden);
	assert_false(image_function_at(img, 0, &start, &end));
	assert_false(image_function_at(img, UINT64_MAX, &start, &end));
	image_done_reading(img);
	assert_true(image_function_at(img, second, &start, &end));
	image_put(img);
}

/* A stripped file has no symbol for hidden(); the unwinder's table still bounds it. */
static void test_functions_from_unwind_tables(void **state)
{
	struct image *img;
	uint64_t hidden, want_end, start, end;
	char name[64], cmd[512];

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	img = open_image(build_path("lib.so"));
	hidden = vaddr_of(img, "hidden");
	assert_true(image_function_at(img, hidden, &start, &want_end));
	image_put(img);
	snprintf(cmd, sizeof(cmd), "strip -o %s %s", build_path("stripped.so"),
		 build_path("lib.so"));
	if (system(cmd))
		skip();
	img = open_image(build_path("stripped.so"));
	assert_true(image_function_at(img, hidden + 1, &start, &end));
	assert_int_equal(start, hidden);
	assert_int_equal(end, want_end);
	assert_false(symbol_name_at(img, hidden, name, sizeof(name)));
	image_put(img);
}

static void test_room_between_functions(void **state)
{
	struct image *img;
	uint64_t first, second, start, end, first_end, second_end, prev_end, next;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	img = open_image(build_path("lib.so"));
	first = vaddr_of(img, "first");
	second = vaddr_of(img, "second");
	assert_true(image_function_at(img, first, &start, &first_end));
	assert_true(image_function_at(img, second, &start, &second_end));
	image_function_room(img, second, second_end, &prev_end, &next);
	assert_int_equal(prev_end, first_end);
	assert_true(next >= second_end);
	image_function_room(img, first, first_end, &prev_end, &next);
	assert_int_equal(next, second);
	assert_true(first - prev_end < 64);
	/* Outside of the code there is none. */
	image_function_room(img, 16, 32, &prev_end, &next);
	assert_true(prev_end >= 16 || next <= 32);
	image_put(img);
	(void)end;
}

/* Assembly without sizes: the next function bounds each. */
static void test_sizeless_functions_end_at_the_next(void **state)
{
	struct image *img;
	uint64_t a, b, start, end;

	(void)state;
	need_elf("cc", "-shared -nostdlib", "asm.so", "s",
		 ".text\n.globl fa,fb\n.type fa,@function\n.type fb,@function\n"
		 "fa: .skip 40,0x90\nfb: .skip 24,0x90\n.section .note.GNU-stack,\"\"\n");
	img = open_image(build_path("asm.so"));
	a = vaddr_of(img, "fa");
	b = vaddr_of(img, "fb");
	assert_true(image_function_at(img, a + 39, &start, &end));
	assert_int_equal(start, a);
	assert_int_equal(end, b);
	assert_true(image_function_at(img, b + 23, &start, &end));
	assert_int_equal(start, b);
	image_put(img);
}

static void test_bias_of_every_mapping(void **state)
{
	struct sb_err err = { 0 };
	struct image *img;
	struct maps maps;
	Dl_info info;
	size_t seen = 0;

	(void)state;
	assert_int_not_equal(dladdr((void *)gnu_get_libc_version, &info), 0);
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	for (size_t i = 0; i < maps.count; i++) {
		uint64_t bias;

		if (!strstr(maps.entry[i].path, "/libc.so.6"))
			continue;
		assert_int_equal(image_of_map(getpid(), &maps.entry[i], &img, &err), 0);
		assert_true(image_bias(img, &maps.entry[i], &bias));
		if (maps.entry[i].x || maps.entry[i].offset == 0) {
			assert_int_equal(bias, (uintptr_t)info.dli_fbase);
			seen++;
		}
		image_put(img);
	}
	maps_free(&maps);
	assert_true(seen >= 1);
}

/* lld lets segments share a file page, so one offset belongs to two of them. */
static void test_bias_where_segments_share_a_page(void **state)
{
	struct image *img;
	uint64_t x_bias, r_bias;
	struct image_segment seg;
	struct map_entry map = { .r = true, .path = "" };

	(void)state;
	need_elf("clang-14", "-fuse-ld=lld -O1 -shared -fPIC", "lld.so", "c", SOURCE);
	img = open_image(build_path("lld.so"));
	assert_true(image_text(img, &seg, 1) >= 1);
	map.offset = seg.offset & ~0xfffull;
	map.start = 0x7f0000000000 + (seg.vaddr & ~0xfffull);
	map.x = true;
	assert_true(image_bias(img, &map, &x_bias));
	assert_int_equal(x_bias, 0x7f0000000000);
	map.offset = 0;
	map.x = false;
	map.start = 0x7f0000000000;
	assert_true(image_bias(img, &map, &r_bias));
	assert_int_equal(r_bias, x_bias);
	map.offset = 1ull << 40;
	assert_false(image_bias(img, &map, &r_bias));
	image_put(img);
}

static void test_deleted_and_replaced_files(void **state)
{
	struct sb_err err = { 0 };
	struct image *img;
	struct maps maps;
	void *lib;
	bool seen = false;

	(void)state;
	need_elf("cc", LIB_FLAGS, "gone.so", "c", SOURCE);
	lib = dlopen(build_path("gone.so"), RTLD_NOW);
	assert_non_null(lib);
	unlink(build_path("gone.so"));
	assert_int_equal(build_write(build_path("gone.so"), "not it", 6), 0);
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	for (size_t i = 0; i < maps.count && !seen; i++) {
		if (strcmp(maps.entry[i].path, build_path("gone.so")) != 0 || !maps.entry[i].x)
			continue;
		seen = true;
		assert_true(maps.entry[i].deleted);
		/* Root reads it through map_files; everyone else is told, and gets no other file.
		 */
		if (image_of_map(getpid(), &maps.entry[i], &img, &err) == 0) {
			assert_string_equal(image_soname(img), "libunit.so.3");
			image_put(img);
		} else {
			assert_int_equal(err.code, SB_EFILE);
		}
	}
	assert_true(seen);
	maps_free(&maps);
	dlclose(lib);
}

/* Known from the first time that it was opened, until the file is another one. */
static void test_soname_without_opening(void **state)
{
	struct map_entry *e = NULL;
	struct sb_err err = { 0 };
	struct image *img;
	struct maps maps;
	void *lib;

	(void)state;
	need_elf("cc", LIB_FLAGS, "named.so", "c", SOURCE);
	lib = dlopen(build_path("named.so"), RTLD_NOW);
	assert_non_null(lib);
	assert_int_equal(maps_read(getpid(), &maps, &err), 0);
	for (size_t i = 0; i < maps.count && !e; i++)
		if (!strcmp(maps.entry[i].path, build_path("named.so")))
			e = &maps.entry[i];
	assert_non_null(e);
	assert_null(image_soname_of_map(getpid(), e));
	assert_int_equal(image_of_map(getpid(), e, &img, &err), 0);
	image_put(img);
	assert_string_equal(image_soname_of_map(getpid(), e), "libunit.so.3");
	assert_int_equal(image_of_ended(e, &img, &err), 0);
	image_put(img);
	e->inode++; /* another file of that name */
	assert_int_equal(image_of_ended(e, &img, &err), -SB_EFILE);
	assert_null(img);
	e->inode--;
	assert_int_equal(utimensat(AT_FDCWD, build_path("named.so"), NULL, 0), 0);
	assert_null(image_soname_of_map(getpid(), e));
	maps_free(&maps);
	dlclose(lib);
}

static void test_files_that_are_no_images(void **state)
{
	static const struct {
		const char *path;
		enum sb_code code;
	} bad[] = {
		{ "/nonexistent/x", SB_EFILE },
		{ "/dev/zero", SB_ENOELF },
		{ "/", SB_ENOELF },
		{ "/etc/passwd", SB_ENOELF },
		{ "/proc/self/maps", SB_ENOELF },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sb_err err = { 0 };
		struct image *img;

		assert_int_equal(image_get(bad[i].path, bad[i].path, &img, &err),
				 -(int)bad[i].code);
		assert_true(strlen(err.what) > 0);
	}
}

static void test_other_machines_are_refused(void **state)
{
	static const struct {
		size_t at;
		unsigned char value;
	} change[] = { { EI_CLASS, ELFCLASS32 },
		       { EI_DATA, ELFDATA2MSB },
		       { 18, EM_S390 },
		       { 16, ET_REL },
		       { 54, 1 } };
	unsigned char *bytes;
	size_t len;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	bytes = build_read(build_path("lib.so"), &len);
	for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		unsigned char kept = bytes[change[i].at];
		struct sb_err err = { 0 };
		struct image *img;

		bytes[change[i].at] = change[i].value;
		build_write(build_path("bad.so"), bytes, len);
		assert_int_equal(image_get(build_path("bad.so"), "bad.so", &img, &err), -SB_ENOELF);
		bytes[change[i].at] = kept;
	}
	free(bytes);
}

/* Whatever is left of the file: an error or an answer, never a crash. */
static void use_image(const char *path)
{
	struct symbol_list list;
	struct sb_err err = { 0 };
	struct image *img;
	uint64_t a = 0, b = 0;
	char name[64];

	if (image_get(path, path, &img, &err)) {
		assert_true(err.code == SB_ENOELF);
		return;
	}
	for (uint64_t v = 0x1000; v < 0x1400; v += 16) {
		image_function_at(img, v, &a, &b);
		image_function_room(img, v, v + 8, &a, &b);
		symbol_name_at(img, v, name, sizeof(name));
	}
	if (symbol_find(img, "f*", 0, &list, &err) == 0)
		symbol_list_free(&list);
	if (symbol_find(img, "firsst", 0, &list, NULL) == 0)
		symbol_list_free(&list);
	symbol_is_import(img, "first");
	image_put(img);
}

static void test_truncated_files(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	bytes = build_read(build_path("lib.so"), &len);
	for (size_t n = 0; n < len; n += n < 1024 ? 7 : 61) {
		build_write(build_path("cut.so"), bytes, n);
		use_image(build_path("cut.so"));
	}
	free(bytes);
}

static void test_flipped_bytes(void **state)
{
	static const unsigned char value[] = { 0x00, 0xff, 0x80, 0x7f };
	unsigned char *bytes;
	size_t len;

	(void)state;
	need_elf("cc", LIB_FLAGS, "lib.so", "c", SOURCE);
	bytes = build_read(build_path("lib.so"), &len);
	for (size_t n = 4; n < len; n += n < 0x400 ? 1 : 37) {
		unsigned char kept = bytes[n];

		bytes[n] = value[n % sizeof(value)];
		build_write(build_path("flip.so"), bytes, len);
		use_image(build_path("flip.so"));
		bytes[n] = kept;
	}
	free(bytes);
}

int main(void)
{
#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, build_setup, build_clean)
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_what_a_library_says_of_itself),
		WITH_DIR(test_one_file_is_one_image),
		WITH_DIR(test_the_path_of_the_very_file),
		WITH_DIR(test_a_file_cut_short_while_it_is_held),
		WITH_DIR(test_zeros_follow_the_file),
		WITH_DIR(test_functions_from_symbols),
		WITH_DIR(test_functions_from_unwind_tables),
		WITH_DIR(test_room_between_functions),
		WITH_DIR(test_sizeless_functions_end_at_the_next),
		WITH_DIR(test_bias_of_every_mapping),
		WITH_DIR(test_bias_where_segments_share_a_page),
		WITH_DIR(test_deleted_and_replaced_files),
		WITH_DIR(test_soname_without_opening),
		WITH_DIR(test_files_that_are_no_images),
		WITH_DIR(test_other_machines_are_refused),
		WITH_DIR(test_truncated_files),
		WITH_DIR(test_flipped_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
