/* SPDX-License-Identifier: MIT */
/* beside others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include "elf-build.h"
#include "elf/demangle.h"
#include "elf/symbol.h"

#define CXX_SOURCE                                                                      \
	"#include <string>\n"                                                           \
	"namespace ns {\n"                                                              \
	"struct Box { int v[4]; __attribute__((noinline)) int &operator[](int i);\n"    \
	"  __attribute__((noinline)) int operator()(int) const; Box(); };\n"            \
	"int &Box::operator[](int i) { return v[i]; }\n"                                \
	"int Box::operator()(int i) const { return v[i] + 1; }\n"                       \
	"Box::Box() { v[0] = 3; }\n"                                                    \
	"__attribute__((noinline)) int over(int a) { return a + 1; }\n"                 \
	"__attribute__((noinline)) int over(int a, double b) { return a + (int)b; }\n"  \
	"__attribute__((noinline)) int over(const std::string &s) { return s[0]; }\n"   \
	"template <class T> __attribute__((noinline)) T twice(T t) { return t + t; }\n" \
	"template int twice<int>(int);\n"                                               \
	"}\n"                                                                           \
	"namespace { __attribute__((noinline, used)) int lone(int a) { return a * 5; } }\n"

static struct image *open_image(const char *path)
{
	struct sb_err err = { 0 };
	struct image *img = NULL;

	if (image_get(path, path, &img, &err))
		fail_msg("%s", err.what);
	return img;
}

static struct image *open_libc(void)
{
	Dl_info info;

	assert_int_not_equal(dladdr((void *)gnu_get_libc_version, &info), 0);
	return open_image(info.dli_fname);
}

/* How many functions a pattern finds; a negative code where it finds none. */
static int count(struct image *img, const char *pattern, unsigned int flags)
{
	struct symbol_list list;
	int ret = symbol_find(img, pattern, flags, &list, NULL);

	if (ret)
		return ret;
	assert_ptr_equal(list.img, img);
	for (size_t i = 0; i < list.count; i++) {
		assert_non_null(list.sym[i].name);
		assert_true(i == 0 || list.sym[i - 1].vaddr < list.sym[i].vaddr);
	}
	ret = (int)list.count;
	symbol_list_free(&list);
	assert_null(list.sym);
	return ret;
}

static struct symbol only(struct image *img, const char *pattern, char *name, size_t size)
{
	struct sb_err err = { 0 };
	struct symbol_list list;
	struct symbol sym;

	if (symbol_find(img, pattern, 0, &list, &err))
		fail_msg("%s: %s", pattern, err.what);
	assert_int_equal(list.count, 1);
	sym = list.sym[0];
	snprintf(name, size, "%s", sym.name);
	sym.name = NULL;
	symbol_list_free(&list);
	return sym;
}

static void test_glob(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} t[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "*", "a/b", true },
		{ "a*c", "abbc", true },
		{ "a*c", "abcd", false },
		{ "*a*b*", "xxaxxbxx", true },
		{ "?", "", false },
		{ "a?c", "abc", true },
		{ "[a-c]x", "bx", true },
		{ "[!a-c]x", "bx", false },
		{ "[^a]x", "bx", true },
		{ "[]x]", "]", true },
		{ "[a-]", "-", true },
		{ "a[", "a[", true },
		{ "operator[]", "operator[]", true },
		{ "\\*", "*", true },
		{ "\\*", "a", false },
		{ "a\\", "a\\", true },
		{ "*.so*", "libx.so.1", true },
		{ "a**b", "ab", true },
		{ "[z-a]", "m", false },
		{ "\xc3*", "\xc3\xa9", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (glob_match(t[i].pattern, t[i].text) != t[i].match)
			fail_msg("'%s' and '%s'", t[i].pattern, t[i].text);
	assert_true(glob_is_pattern("a*") && glob_is_pattern("a?") && glob_is_pattern("[a"));
	assert_false(glob_is_pattern("a") || glob_is_pattern("a\\*") || glob_is_pattern(""));
}

static void test_glob_is_not_exponential(void **state)
{
	char text[4096];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_names_of_libc(void **state)
{
	struct image *img = open_libc();
	struct symbol sym;
	char name[64];

	(void)state;
	sym = only(img, "getpid", name, sizeof(name));
	assert_true(sym.vaddr && sym.size && !sym.offset && !sym.ifunc);
	assert_string_equal(name, "getpid");
	sym = only(img, "getpid+0x1", name, sizeof(name));
	assert_int_equal(sym.offset, 1);
	assert_int_equal(count(img, "getpid+0x10000", 0), -SB_ENOSYMBOL);
	assert_int_equal(count(img, "getpi", 0), -SB_ENOSYMBOL);
	assert_int_equal(count(img, "getpid*", SYMBOL_LITERAL), -SB_ENOSYMBOL);
	assert_int_equal(count(img, "environ", 0), -SB_ENOTFUNC);
	assert_int_equal(count(img, "", 0), -SB_ESPEC);
	assert_true(count(img, "getp*", 0) >= 3);
	assert_true(count(img, "*", 0) > 1000);
	assert_true(symbol_is_defined(img, "getpid"));
	assert_false(symbol_is_defined(img, "environ"));
	assert_false(symbol_is_import(img, "getpid"));
	image_put(img);
}

/* Of many names each is found by an index, and not by a pass over the table: it is the same. */
static void test_many_names_are_found_as_one_is(void **state)
{
	static const char *const names[] = {
		"getpid",	"memcpy", "memcpy@GLIBC_2.2.5", "write",
		"nanosleep",	"strlen", "pthread_create",	"environ",
		"no_such_name", "fopen",  "fopen@@GLIBC_2.2.5", "realpath",
	};
	enum { NAMES = sizeof(names) / sizeof(*names), MANY = 100 };

	(void)state;
	for (int i = 0; i < NAMES; i++) {
		struct symbol_list one = { 0 }, many = { 0 };
		struct image *img = open_libc(); /* anew: nothing has been asked of it */
		int ret = symbol_find(img, names[i], SYMBOL_LITERAL, &one, NULL);

		for (int k = 0; k < MANY; k++) {
			symbol_list_free(&many);
			assert_int_equal(symbol_find(img, names[i], SYMBOL_LITERAL, &many, NULL),
					 ret);
		}
		assert_int_equal(one.count, many.count);
		for (size_t k = 0; k < one.count; k++) {
			assert_int_equal(one.sym[k].vaddr, many.sym[k].vaddr);
			assert_string_equal(one.sym[k].name, many.sym[k].name);
		}
		symbol_list_free(&one);
		symbol_list_free(&many);
		image_put(img);
	}
}

static void test_default_version_wins(void **state)
{
	struct image *img;
	struct symbol v1, v2, plain;
	char name[64], path[192];
	static const char source[] =
		"int f_old(void) { return 1; }\nint f_new(void) { return 2; }\n"
		"__asm__(\".symver f_old,f@V1\");\n__asm__(\".symver f_new,f@@V2\");\n"
		"int g_old(void) { return 3; }\n__asm__(\".symver g_old,g@V1\");\n";
	char flags[400];

	(void)state;
	snprintf(path, sizeof(path), "%s", build_path("map"));
	build_write(path, "V1 { local: *_old; *_new; }; V2 {} V1;", 38);
	snprintf(flags, sizeof(flags), "-O1 -fPIC -shared -Wl,--version-script=%s", path);
	need_elf("cc", flags, "ver.so", "c", source);
	img = open_image(build_path("ver.so"));
	v1 = only(img, "f@V1", name, sizeof(name));
	assert_string_equal(name, "f@V1");
	v2 = only(img, "f@@V2", name, sizeof(name));
	assert_string_equal(name, "f@@V2");
	plain = only(img, "f", name, sizeof(name));
	assert_string_equal(name, "f");
	assert_true(v1.vaddr != v2.vaddr && plain.vaddr == v2.vaddr);
	only(img, "f@V2", name, sizeof(name));
	only(img, "g", name, sizeof(name));
	assert_int_equal(count(img, "f@@V1", 0), -SB_ENOSYMBOL);
	assert_int_equal(count(img, "f@V3", 0), -SB_ENOSYMBOL);
	image_put(img);
}

static void test_cxx_names(void **state)
{
	struct image *img;
	char name[128];

	(void)state;
	need_elf("c++", "-O1 -fPIC -shared", "cxx.so", "cc", CXX_SOURCE);
	img = open_image(build_path("cxx.so"));
	assert_int_equal(count(img, "ns::over", 0), 3);
	assert_int_equal(count(img, "ns::over(int)", 0), 1);
	assert_int_equal(count(img, "ns::over(int, double)", 0), 1);
	assert_int_equal(count(img, "ns::over(float)", 0), -SB_ENOSYMBOL);
	assert_int_equal(count(img, "ns::over*", 0), 3);
	assert_int_equal(count(img, "ns::over(*)", 0), 3);
	assert_int_equal(count(img, "ns::over*", SYMBOL_LITERAL), -SB_ENOSYMBOL);
	only(img, "ns::over(std::*)", name, sizeof(name));
	assert_non_null(strstr(name, "4over"));
	only(img, "ns::Box::operator[]", name, sizeof(name));
	assert_string_equal(name, "_ZN2ns3BoxixEi");
	only(img, "ns::Box::operator[](int)", name, sizeof(name));
	only(img, "*::operator[]*", name, sizeof(name));
	assert_string_equal(name, "_ZN2ns3BoxixEi");
	only(img, "ns::Box::operator()", name, sizeof(name));
	assert_string_equal(name, "_ZNK2ns3BoxclEi");
	only(img, "ns::Box::operator()(int) const", name, sizeof(name));
	only(img, "ns::Box::Box", name, sizeof(name));
	only(img, "ns::twice<int>", name, sizeof(name));
	only(img, "ns::twice<int>(int)", name, sizeof(name));
	only(img, "int ns::twice<int>(int)", name, sizeof(name));
	only(img, "(anonymous namespace)::lone", name, sizeof(name));
	only(img, "_ZN2ns4overEi", name, sizeof(name));
	image_put(img);
}

static void test_cut_parameters(void **state)
{
	static const struct {
		const char *full, *cut;
	} t[] = {
		{ "f(int)", "f" },
		{ "a::f(int (*)(int)) const", "a::f" },
		{ "a::operator()(int) &&", "a::operator()" },
		{ "a::operator()", "a::operator()" },
		{ "f(int) [clone .isra.0]", "f" },
		{ "f(int)::{lambda(int)#1}::operator()(int) const",
		  "f(int)::{lambda(int)#1}::operator()" },
		{ "(anonymous namespace)", "(anonymous namespace)" },
		{ "f", "f" },
		{ "", "" },
		{ ")", ")" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char text[128];

		strcpy(text, t[i].full);
		demangle_cut_parameters(text);
		assert_string_equal(text, t[i].cut);
	}
}

/* What is demanded of a mangled name must be there, or matches would be lost. */
static void test_required_word_is_in_the_mangled_name(void **state)
{
	static const struct {
		const char *pattern;
		bool glob;
		const char *want;
	} t[] = {
		{ "ns::Box::operator[]", false, "Box" },
		{ "std::string::append", false, "append" },
		{ "std::basic_string<char>::*", true, "" },
		{ "init", false, "init" },
		{ "*init*", true, "init" },
		{ "alloc*", true, "alloc" },
		{ "st*", true, "" },
		{ "* init*", true, "" },
		{ "f(unsigned int)", false, "f" },
		{ "*alloc*", true, "" },
		{ "a[b-d]Widget?", true, "Widget" },
		{ "f<5>", false, "f" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct glob_literal got;

		demangle_required(t[i].pattern, t[i].glob, &got);
		assert_string_equal(got.text, t[i].want);
	}
}

static void test_rust_names(void **state)
{
	char *name = demangle_name("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
				   DEMANGLE_NO_RETURN);

	(void)state;
	assert_string_equal(name, "core::fmt::Formatter::pad");
	free(name);
	name = demangle_name("_RNvC6_123foo3bar", DEMANGLE_NO_RETURN);
	assert_string_equal(name, "123foo::bar");
	free(name);
	assert_null(demangle_name("printf", DEMANGLE_NO_RETURN));
}

/* Each part refers twice to the one before: 2^40 types, of 400 bytes. */
static void test_name_that_doubles(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1fSt4pairIiiE";

	(void)state;
	for (int i = 0; i < 40; i++) {
		char ref[8], part[32];

		snprintf(ref, sizeof(ref), i < 36 ? "S%c_" : "S1%c_", digits[i % 36]);
		snprintf(part, sizeof(part), "S_I%s%sE", ref, ref);
		strcat(name, part);
		if (i == 2) {
			char *shown = demangle_name(name, DEMANGLE_NO_RETURN);

			assert_non_null(strstr(shown, "std::pair<std::pair<int, int>"));
			free(shown);
		}
	}
	assert_null(demangle_name(name, DEMANGLE_NO_RETURN));
}

static void test_local_twins_are_ambiguous(void **state)
{
	struct sb_err err = { 0 };
	struct symbol_list list;
	struct image *img;
	char name[64];
	uint64_t vaddr;

	(void)state;
	need_elf("cc", "-shared -nostdlib", "twin.so", "s",
		 ".text\n.type twin,@function\ntwin: ret\n.size twin,1\n"
		 ".globl sole\n.type sole,@function\nsole: nop\nret\n.size sole,2\n"
		 ".type alias,@function\n.set alias,sole\n.section .note.GNU-stack,\"\"\n");
	img = open_image(build_path("twin.so"));
	only(img, "twin", name, sizeof(name));
	/* One match an address, under the name of the global one. */
	only(img, "[sa][ol]*", name, sizeof(name));
	assert_string_equal(name, "sole");
	only(img, "alias", name, sizeof(name));
	assert_string_equal(name, "alias");
	image_put(img);

	if (!build_elf("cc", "-c", "c1.o", "c",
		       "static __attribute__((used)) int t(void){return 1;}") ||
	    !build_elf("cc", "-c", "c2.o", "c",
		       "static __attribute__((used)) int t(void){return 2;}"))
		skip();
	{
		char flags[512];

		snprintf(flags, sizeof(flags), "-shared -fPIC %s %s", build_path("c1.o"),
			 build_path("c2.o"));
		need_elf("cc", flags, "both.so", "c", "int z;");
	}
	img = open_image(build_path("both.so"));
	assert_int_equal(symbol_find(img, "t", 0, &list, &err), -SB_EAMBIGUOUS);
	assert_non_null(strstr(err.hint, "0x"));
	vaddr = strtoull(strstr(err.hint, "0x"), NULL, 16);
	snprintf(name, sizeof(name), "0x%llx", (unsigned long long)vaddr);
	assert_int_equal(only(img, name, name, sizeof(name)).vaddr, vaddr);
	assert_string_equal(name, "t");
	image_put(img);
}

static void test_addresses(void **state)
{
	struct image *img = open_libc();
	struct symbol sym;
	char name[64], at[32];

	(void)state;
	sym = only(img, "getpid", name, sizeof(name));
	snprintf(at, sizeof(at), "0x%llx", (unsigned long long)sym.vaddr + 2);
	sym = only(img, at, name, sizeof(name));
	assert_int_equal(sym.offset, 2);
	assert_true(symbol_name_at(img, sym.vaddr + 2, at, sizeof(at)));
	assert_non_null(strstr(at, "+0x2"));
	assert_int_equal(count(img, "0x10", 0), -SB_ENOSYMBOL);
	assert_int_equal(count(img, "0xffffffffffffffff", 0), -SB_ENOSYMBOL);
	assert_false(symbol_name_at(img, 0x10, at, sizeof(at)));
	image_put(img);
}

static void test_suggestions(void **state)
{
	struct image *img = open_libc();
	struct symbol_list list;
	struct sb_err err = { 0 };
	char buf[256], tiny[4];

	(void)state;
	symbol_suggest(&img, 1, "nanoslep", buf, sizeof(buf));
	assert_non_null(strstr(buf, "'nanosleep'"));
	symbol_suggest(&img, 1, "GETPID", buf, sizeof(buf));
	assert_non_null(strstr(buf, "'getpid'"));
	symbol_suggest(&img, 1, "nothing_like_it_at_all", buf, sizeof(buf));
	assert_string_equal(buf, "");
	symbol_suggest(&img, 1, "nanoslep", tiny, sizeof(tiny));
	assert_string_equal(tiny, "");
	assert_int_equal(symbol_find(img, "nanoslep", 0, &list, &err), -SB_ENOSYMBOL);
	assert_non_null(strstr(err.hint, "'nanosleep'"));
	image_put(img);
}

static void test_imports(void **state)
{
	struct sb_err err = { 0 };
	struct symbol_list list;
	struct image *img;

	(void)state;
	need_elf("cc", "-O1", "prog", "c",
		 "#include <unistd.h>\nint main(void) { return (int)getppid(); }\n");
	img = open_image(build_path("prog"));
	assert_true(symbol_is_import(img, "getppid"));
	assert_false(symbol_is_defined(img, "getppid"));
	assert_false(symbol_is_import(img, "main"));
	assert_int_equal(symbol_find(img, "getppid", 0, &list, &err), -SB_ENOSYMBOL);
	assert_non_null(strstr(err.what, "imports"));
	assert_true(strlen(image_interp(img)) > 0);
	image_put(img);
}

static void test_source_lines(void **state)
{
	struct sb_err err = { 0 }, none = { 0 };
	struct symbol_list list;
	struct image *img;

	(void)state;
	need_elf("cc", "-O0 -g -gz=zlib", "lines", "c",
		 "int one(int a)\n{\n\treturn a + 1;\n}\n\nint main(void)\n{\n\treturn "
		 "one(2);\n}\n");
	img = open_image(build_path("lines"));
	assert_int_equal(symbol_find_line(img, "lines.c", 3, &list, &err), 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.sym[0].name, "one");
	assert_true(list.sym[0].offset > 0);
	symbol_list_free(&list);
	assert_int_equal(symbol_find_line(img, "lines.c", 2, &list, &err), 0);
	assert_int_equal(list.sym[0].offset, 0);
	symbol_list_free(&list);
	assert_int_equal(symbol_find_line(img, "lines.c", 5, &list, &err), -SB_ENOSYMBOL);
	assert_non_null(strstr(err.hint, "nearest line"));
	assert_int_equal(symbol_find_line(img, "ines.c", 3, &list, &none), -SB_ENOSYMBOL);
	/* libdw marked sections in the mapping; that must be gone. */
	assert_int_equal(count(img, "one", 0), 1);
	assert_int_equal(symbol_find_line(img, "lines.c", 8, &list, NULL), 0);
	symbol_list_free(&list);
	image_put(img);
}

static size_t places(struct image *img, const char *file, unsigned int line)
{
	struct symbol_list list;
	size_t n;

	if (symbol_find_line(img, file, line, &list, NULL))
		return 0;
	n = list.count;
	symbol_list_free(&list);
	return n;
}

/* Two functions on a line, a template's instances, inline copies beside each other: all of them. */
static void test_line_of_several_functions(void **state)
{
	struct symbol_list list;
	struct image *img;

	(void)state;
	need_elf("cc", "-O0 -g", "twoline", "c",
		 "int f(int a) { return a + 1; } int g(int a) { return a + 2; }\n"
		 "static inline __attribute__((always_inline)) int sq(int a)\n{\n"
		 "\treturn a * a;\n}\n"
		 "int main(int c, char **v) { (void)v; return f(c) + g(c) +\n"
		 "sq(c) + sq(c + 1) + sq(c + 2);\n}\n");
	img = open_image(build_path("twoline"));
	assert_int_equal(symbol_find_line(img, "twoline.c", 1, &list, NULL), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.sym[0].name, "f");
	assert_string_equal(list.sym[1].name, "g");
	assert_true(list.sym[0].offset == 0 && list.sym[1].offset == 0);
	symbol_list_free(&list);
	assert_int_equal(places(img, "twoline.c", 4), 3);
	image_put(img);
	need_elf("cc", "-O2 -g", "onefun", "c",
		 "static inline int sq(int a) { return a * a; }\n"
		 "int vol; int main(int c, char **v)\n{\n\t(void)v;\n"
		 "\tvol = sq(vol + c); vol = sq(vol + 3); return 0; }\n");
	img = open_image(build_path("onefun"));
	assert_int_equal(places(img, "onefun.c", 1), 2);
	image_put(img);
	need_elf("c++", "-O1 -g", "templ", "cc",
		 "template <class T> __attribute__((noinline)) T twice(T t)\n{\n"
		 "\treturn t + t;\n}\n"
		 "int main() { return twice(1) + (int)twice(2.0) + (int)twice(3L); }\n");
	img = open_image(build_path("templ"));
	assert_int_equal(places(img, "templ.cc", 3), 3);
	image_put(img);
}

/* Without section headers .dynsym is found through the dynamic section and the hash table. */
static void test_file_without_section_headers(void **state)
{
	static const char *const styles[] = { "sysv", "gnu" };
	unsigned char *bytes;
	size_t len;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct image *img;
		char flags[128], name[64];

		snprintf(flags, sizeof(flags), "-O1 -fPIC -shared -Wl,--hash-style=%s", styles[i]);
		need_elf("cc", flags, "nosec.so", "c",
			 "int alpha(int a) { return a; }\nint beta(int a) { return a + 1; }\n");
		bytes = build_read(build_path("nosec.so"), &len);
		memset(bytes + 40, 0, 8); /* e_shoff */
		memset(bytes + 60, 0, 4); /* e_shnum, e_shstrndx */
		build_write(build_path("nosec.so"), bytes, len);
		free(bytes);
		img = open_image(build_path("nosec.so"));
		only(img, "beta", name, sizeof(name));
		only(img, "alpha", name, sizeof(name));
		image_put(img);
	}
}

static void test_compressed_and_separate_symbols(void **state)
{
	char cmd[1024];
	struct image *img;
	char name[64];

	(void)state;
	need_elf("cc", "-O1 -Wl,--build-id", "mini", "c",
		 "static __attribute__((noinline, used)) int inner(int a) { return a * 7; }\n"
		 "int main(int c, char **v) { (void)v; return inner(c); }\n");
	snprintf(cmd, sizeof(cmd),
		 "cd '%s' && objcopy --only-keep-debug mini m.dbg && xz -k m.dbg && strip mini && "
		 "objcopy --add-section .gnu_debugdata=m.dbg.xz mini",
		 build_dir);
	if (system(cmd))
		skip();
	img = open_image(build_path("mini"));
	only(img, "inner", name, sizeof(name));
	assert_string_equal(name, "inner");
	only(img, "inn?r", name, sizeof(name));
	image_put(img);
}

int main(void)
{
#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, build_setup, build_clean)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_is_not_exponential),
		cmocka_unit_test(test_names_of_libc),
		cmocka_unit_test(test_many_names_are_found_as_one_is),
		WITH_DIR(test_default_version_wins),
		WITH_DIR(test_cxx_names),
		cmocka_unit_test(test_cut_parameters),
		cmocka_unit_test(test_required_word_is_in_the_mangled_name),
		cmocka_unit_test(test_rust_names),
		cmocka_unit_test(test_name_that_doubles),
		WITH_DIR(test_local_twins_are_ambiguous),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_suggestions),
		WITH_DIR(test_imports),
		WITH_DIR(test_source_lines),
		WITH_DIR(test_line_of_several_functions),
		WITH_DIR(test_file_without_section_headers),
		WITH_DIR(test_compressed_and_separate_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
