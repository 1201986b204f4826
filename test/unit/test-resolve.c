/* SPDX-License-Identifier: MIT */
/* beside others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "elf-build.h"
#include "elf/resolve.h"

/* A live program whose map and memory are read. */
struct child {
	pid_t pid;
	int mem, in, out;
	struct maps maps;
};

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct child *c = ctx;

	return pread(c->mem, buf, len, (off_t)addr) == (ssize_t)len ? 0 : -EIO;
}

static void child_end(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->mem);
	close(c->in);
	close(c->out);
	maps_free(&c->maps);
}

/* Starts the program and waits for the addresses that it prints, one a line. */
static void child_start(struct child *c, const char *program, uint64_t *said, size_t count)
{
	char path[64], text[512] = "", *at = text;
	struct sb_err err = { 0 };
	int in[2], out[2];
	size_t used = 0, lines = 0;

	assert_int_equal(pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC), 0);
	c->pid = fork();
	if (c->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->in = in[1];
	c->out = out[0];
	while (lines < count && used + 1 < sizeof(text)) {
		ssize_t n = read(c->out, text + used, sizeof(text) - 1 - used);

		assert_true(n > 0);
		used += (size_t)n;
		lines = 0;
		for (size_t i = 0; i < used; i++)
			lines += text[i] == '\n';
	}
	for (size_t i = 0; i < count; i++)
		said[i] = strtoull(at, &at, 16);
	snprintf(path, sizeof(path), "/proc/%d/mem", c->pid);
	c->mem = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(c->mem >= 0);
	assert_int_equal(maps_read(c->pid, &c->maps, &err), 0);
}

static int resolve(struct child *c, enum resolve_kind kind, const char *module, const char *symbol,
		   struct resolve_result *res, struct sb_err *err)
{
	struct resolve_request req = { .kind = kind, .module = module, .symbol = symbol };
	struct resolve_access access = { .read = read_memory, .ctx = c };

	*err = (struct sb_err){ 0 };
	return resolve_target(c->pid, &c->maps, &req, &access, res, err);
}

/* The address of the only site. */
static uint64_t only(struct child *c, const char *module, const char *symbol)
{
	struct resolve_result res;
	struct sb_err err;
	uint64_t addr;

	if (resolve(c, RESOLVE_SYMBOL, module, symbol, &res, &err))
		fail_msg("%s:%s: %s", module, symbol, err.what);
	assert_int_equal(res.count, 1);
	assert_int_equal(res.ifunc_pending, 0);
	assert_true(res.site[0].func <= res.site[0].addr);
	assert_true(res.site[0].addr - res.site[0].bias > 0);
	addr = res.site[0].addr;
	resolve_free(&res);
	assert_null(res.site);
	return addr;
}

#define LIBRARY                                                   \
	"int lib_call(int a) { return a + 1; }\n"                 \
	"int lib_other(int a) { return a + 2; }\n"                \
	"static int impl(int a) { return a + 3; }\n"              \
	"static int (*choose(void))(int) { return impl; }\n"      \
	"int chosen(int a) __attribute__((ifunc(\"choose\")));\n" \
	"void *lib_impl(void) { return (void *)impl; }\n"

#define PROGRAM                                                                            \
	"#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"                   \
	"#include <time.h>\n"                                                              \
	"int lib_call(int); int chosen(int); void *lib_impl(void);\n"                      \
	"int program_own(int a) { return a * 2; }\n"                                       \
	"size_t (*volatile len)(const char *) = strlen;\n"                                 \
	"void *(*volatile copy)(void *, const void *, size_t) = memcpy;\n"                 \
	"int main(int c, char **v) { char b[9];\n"                                         \
	"  copy(b, v[0], 1); b[0] += (char)len(v[0]);\n"                                   \
	"  printf(\"%p\\n%p\\n%p\\n%p\\n%p\\n\", (void *)program_own, (void *)lib_call,\n" \
	"    lib_impl(), (void *)len, (void *)copy);\n"                                    \
	"  fflush(stdout); (void)time(NULL); (void)getppid();\n"                           \
	"  (void)chosen(c); return (int)read(0, b, 1); }\n"

enum { OWN, LIB_CALL, IMPL, STRLEN, MEMCPY, SAID };

static struct child victim;
static uint64_t said[SAID];
static int victim_runs;

static int victim_setup(void **state)
{
	char flags[400];

	if (build_setup(state) || !build_elf("cc", "-O1 -fPIC -shared -Wl,-soname,libvictim.so.1",
					     "libvictim-2.so", "c", LIBRARY))
		return 0;
	snprintf(flags, sizeof(flags), "-O1 -Wl,-z,now -Wl,-rpath,%s -L%s %s", build_dir, build_dir,
		 build_path("libvictim-2.so"));
	/* The loader looks for the soname. */
	if (symlink("libvictim-2.so", build_path("libvictim.so.1")) ||
	    !build_elf("cc", "-O1 -c", "prog.o", "c", PROGRAM))
		return 0;
	snprintf(flags, sizeof(flags), "-Wl,-z,now -Wl,-rpath,%s %s %s", build_dir,
		 build_path("prog.o"), build_path("libvictim-2.so"));
	if (!build_elf("cc", flags, "victim", "c", "int unused;\n"))
		return 0;
	child_start(&victim, build_path("victim"), said, SAID);
	victim_runs = 1;
	return 0;
}

static int victim_end(void **state)
{
	if (victim_runs)
		child_end(&victim);
	return build_clean(state);
}

#define need_victim()                                            \
	do {                                                     \
		if (!victim_runs) {                              \
			print_message("skipped: no compiler\n"); \
			skip();                                  \
		}                                                \
	} while (0)

static void test_modules_by_every_name(void **state)
{
	char real[192];

	(void)state;
	need_victim();
	snprintf(real, sizeof(real), "%s", build_path("libvictim-2.so"));
	assert_int_equal(only(&victim, "", "program_own"), said[OWN]);
	assert_int_equal(only(&victim, "victim", "program_own"), said[OWN]);
	assert_int_equal(only(&victim, build_path("victim"), "program_own"), said[OWN]);
	assert_int_equal(only(&victim, "libvictim-2.so", "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, "libvictim.so.1", "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, "libvictim*", "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, real, "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, build_path("libvictim.so.1"), "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, "/tmp/*/libvictim*", "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, "*", "lib_call"), said[LIB_CALL]);
	assert_int_equal(only(&victim, "libvictim*", "lib_call+0x1"), said[LIB_CALL] + 1);
}

static void test_imports_go_to_their_definition(void **state)
{
	struct resolve_result res;
	struct sb_err err;

	(void)state;
	need_victim();
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "", "lib_call", &res, &err), 0);
	assert_int_equal(res.count, 1);
	assert_true(res.site[0].via_import);
	assert_int_equal(res.site[0].addr, said[LIB_CALL]);
	assert_string_equal(res.note, "lib_call is defined in libvictim.so.1");
	assert_string_equal(res.site[0].name, "lib_call");
	resolve_free(&res);
	assert_int_equal(resolve(&victim, RESOLVE_LITERAL, "", "getppid", &res, &err), 0);
	assert_true(res.count == 1 && res.site[0].via_import);
	resolve_free(&res);
}

static void test_several_sites_are_sorted(void **state)
{
	struct resolve_result res;
	struct sb_err err;

	(void)state;
	need_victim();
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "libvictim*", "lib_*", &res, &err), 0);
	assert_int_equal(res.count, 3);
	assert_int_equal(res.modules, 1);
	for (size_t i = 1; i < res.count; i++)
		assert_true(res.site[i - 1].addr < res.site[i].addr);
	for (size_t i = 0; i < res.count; i++)
		assert_true(res.site[i].size > 0);
	resolve_free(&res);
}

static void test_ifunc_is_its_implementation(void **state)
{
	(void)state;
	need_victim();
	assert_int_equal(only(&victim, "libvictim*", "chosen"), said[IMPL]);
	assert_int_equal(only(&victim, "", "chosen"), said[IMPL]);
	assert_int_equal(only(&victim, "libc.so.6", "strlen"), said[STRLEN]);
	assert_int_equal(only(&victim, "libc.so.6", "memcpy"), said[MEMCPY]);
	assert_int_equal(only(&victim, "", "memcpy"), said[MEMCPY]);
	assert_int_equal(only(&victim, "libc.so.6", "memcpy+0x4"), said[MEMCPY] + 4);
}

static int read_nothing(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	(void)addr;
	memset(buf, 0, len);
	return 0;
}

static void test_ifunc_before_relocation_is_pending(void **state)
{
	struct resolve_request req = { .module = "libvictim*", .symbol = "chosen" };
	struct resolve_access access = { .read = read_nothing };
	struct resolve_result res;
	struct sb_err err = { 0 };

	(void)state;
	need_victim();
	assert_int_equal(resolve_target(victim.pid, &victim.maps, &req, &access, &res, &err), 0);
	assert_int_equal(res.count, 0);
	assert_int_equal(res.ifunc_pending, 1);
	resolve_free(&res);
}

/* In glibc's libc.so on x86-64 time() is an IFUNC that ends in the vDSO. */
static void test_vdso_functions_are_refused_or_found(void **state)
{
	struct resolve_result res;
	struct sb_err err;
	int ret;

	(void)state;
	need_victim();
	ret = resolve(&victim, RESOLVE_SYMBOL, "libc.so.6", "time", &res, &err);
	assert_true(ret == -SB_EREFUSED || (ret == 0 && res.count + res.ifunc_pending == 1));
	resolve_free(&res);
}

static void test_symbol_in_another_module_is_suggested(void **state)
{
	struct resolve_result res;
	struct sb_err err;

	(void)state;
	need_victim();
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "libc.so.6", "lib_call", &res, &err),
			 -SB_ENOSYMBOL);
	assert_string_equal(err.hint, "'lib_call' is defined in libvictim.so.1");
	assert_int_equal(res.count, 0);
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "libvictim*", "lib_kall", &res, &err),
			 -SB_ENOSYMBOL);
	assert_non_null(strstr(err.hint, "'lib_call'"));
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "libc.so.6", "environ", &res, &err),
			 -SB_ENOTFUNC);
}

static void test_unknown_module_is_pending_with_a_hint(void **state)
{
	struct resolve_result res;
	struct sb_err err;

	(void)state;
	need_victim();
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "libnone.so", "lib_call", &res, &err), 0);
	assert_int_equal(res.modules, 0);
	assert_int_equal(res.count, 0);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.hint, "'lib_call' is defined in libvictim.so.1");
	assert_int_equal(resolve(&victim, RESOLVE_SYMBOL, "libvictm-2.so", "x", &res, &err), 0);
	assert_non_null(strstr(err.hint, "'libvictim-2.so'"));
}

static void test_interpreter_in_the_executable(void **state)
{
	struct child c;
	uint64_t addr;

	(void)state;
	need_elf("cc", "-O1", "py", "c",
		 "#include <stdio.h>\n#include <unistd.h>\n"
		 "int Py_BytesMain(int a) { return a; }\n"
		 "int main(void) { printf(\"%p\\n\", (void *)Py_BytesMain); fflush(stdout);\n"
		 "  char b; return (int)read(0, &b, 1); }\n");
	child_start(&c, build_path("py"), &addr, 1);
	assert_int_equal(only(&c, "libpython*", "Py_BytesMain"), addr);
	assert_int_equal(only(&c, "libpython3.12.so.1.0", "Py_BytesMain"), addr);
	child_end(&c);
	if (victim_runs) {
		struct resolve_result res;
		struct sb_err err;

		assert_int_equal(
			resolve(&victim, RESOLVE_SYMBOL, "libpython*", "Py_BytesMain", &res, &err),
			0);
		assert_int_equal(res.modules, 0);
	}
}

/* A fixed-address program, a static one, and one that was deleted: each has its own traps. */
static void test_layouts_of_programs(void **state)
{
	enum { FIXED = 2 };
	static const char *const flags[] = {
		"-O1 -no-pie",	     "-O1 -static",	 "-O1 -static-pie",
		"-O1 -fuse-ld=gold", "-O1 -fuse-ld=lld", "-O1 -Wl,-z,noseparate-code",
		"-O1 -s -rdynamic",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct child c;
		uint64_t addr[2];

		if (!build_elf(
			    "cc", flags[i], "layout", "c",
			    "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
			    "size_t (*volatile len)(const char *) = strlen;\n"
			    "int own_code(int a) { return a * 2; }\n"
			    "int main(int c, char **v) { printf(\"%p\\n%p\\n\", (void *)own_code,\n"
			    "  (void *)len); fflush(stdout); c += (int)len(v[0]);\n"
			    "  char b; return (int)read(0, &b, 1) + c; }\n"))
			continue;
		child_start(&c, build_path("layout"), addr, 2);
		if (only(&c, "", "own_code") != addr[0])
			fail_msg("%s: own_code", flags[i]);
		/* The address that a fixed-address program takes is its own PLT entry's. */
		if (only(&c, "", "strlen") != addr[1] && i >= FIXED)
			fail_msg("%s: strlen", flags[i]);
		child_end(&c);
	}
}

static void test_deleted_executable(void **state)
{
	struct resolve_result res;
	struct sb_err err;
	struct child c;
	uint64_t addr;
	int ret;

	(void)state;
	need_elf("cc", "-O1", "gone", "c",
		 "#include <stdio.h>\n#include <unistd.h>\n"
		 "int own_code(int a) { return a * 2; }\n"
		 "int main(void) { printf(\"%p\\n\", (void *)own_code); fflush(stdout);\n"
		 "  char b; return (int)read(0, &b, 1); }\n");
	child_start(&c, build_path("gone"), &addr, 1);
	unlink(build_path("gone"));
	maps_free(&c.maps);
	assert_int_equal(maps_read(c.pid, &c.maps, &err), 0);
	ret = resolve(&c, RESOLVE_SYMBOL, "", "own_code", &res, &err);
	assert_true(ret == -SB_EFILE || (res.count == 1 && res.site[0].addr == addr));
	resolve_free(&res);
	child_end(&c);
}

/* dlmopen() maps a library once more in a namespace of its own: both copies are sites. */
static void test_every_namespace_is_a_site(void **state)
{
	struct resolve_result res;
	struct sb_err err;
	struct child c;
	uint64_t addr[2];
	char source[1024];

	(void)state;
	need_victim();
	snprintf(source, sizeof(source),
		 "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n"
		 "int main(void) { void *a = dlopen(\"%s\", RTLD_NOW);\n"
		 "  void *b = dlmopen(LM_ID_NEWLM, \"%s\", RTLD_NOW);\n"
		 "  printf(\"%%p\\n%%p\\n\", dlsym(a, \"lib_call\"), dlsym(b, \"lib_call\"));\n"
		 "  fflush(stdout); char x; return (int)read(0, &x, 1); }\n",
		 build_path("libvictim-2.so"), build_path("libvictim-2.so"));
	need_elf("cc", "-O1 -D_GNU_SOURCE", "twice", "c", source);
	child_start(&c, build_path("twice"), addr, 2);
	assert_true(addr[0] && addr[1]);
	assert_int_equal(resolve(&c, RESOLVE_SYMBOL, "libvictim*", "lib_call", &res, &err), 0);
	assert_int_equal(res.count, 2);
	assert_int_equal(res.modules, 2);
	assert_int_equal(res.site[0].addr, addr[0] < addr[1] ? addr[0] : addr[1]);
	assert_int_equal(res.site[1].addr, addr[0] < addr[1] ? addr[1] : addr[0]);
	resolve_free(&res);
	child_end(&c);
}

static void test_module_patterns(void **state)
{
	(void)state;
	assert_true(resolve_module_matches("libc.so.6", "/usr/lib/libc.so.6", NULL));
	assert_true(resolve_module_matches("libc.so*", "/usr/lib/libc.so.6", NULL));
	assert_true(resolve_module_matches("/usr/lib/libc.so.6", "/usr/lib/libc.so.6", NULL));
	assert_true(resolve_module_matches("*/libc*", "/usr/lib/libc.so.6", NULL));
	assert_true(resolve_module_matches("a[b].so", "/x/a[b].so", NULL));
	assert_false(resolve_module_matches("libc", "/usr/lib/libc.so.6", NULL));
	assert_false(resolve_module_matches("*cuda*", "/opt/cuda/libother.so", NULL));
	assert_false(resolve_module_matches("", "/bin/sleep", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules_by_every_name),
		cmocka_unit_test(test_imports_go_to_their_definition),
		cmocka_unit_test(test_several_sites_are_sorted),
		cmocka_unit_test(test_ifunc_is_its_implementation),
		cmocka_unit_test(test_ifunc_before_relocation_is_pending),
		cmocka_unit_test(test_vdso_functions_are_refused_or_found),
		cmocka_unit_test(test_symbol_in_another_module_is_suggested),
		cmocka_unit_test(test_unknown_module_is_pending_with_a_hint),
		cmocka_unit_test(test_interpreter_in_the_executable),
		cmocka_unit_test(test_layouts_of_programs),
		cmocka_unit_test(test_deleted_executable),
		cmocka_unit_test(test_every_namespace_is_a_site),
		cmocka_unit_test(test_module_patterns),
	};

	return cmocka_run_group_tests(tests, victim_setup, victim_end);
}
