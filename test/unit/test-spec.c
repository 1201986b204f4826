/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/spec/spec.h"
#include "src/spec/value.h"

/* Words separated by '|', for what a shell would hand over. */
static int parse(const char *line, struct spec_list *list, struct sb_err *err)
{
	char *text = strdup(line), *words[32], *save;
	size_t n = 0;
	int rc;

	for (char *w = strtok_r(text, "|", &save); w; w = strtok_r(NULL, "|", &save))
		words[n++] = w;
	rc = spec_parse_words(words, n, list, err);
	free(text);
	return rc;
}

static void test_targets_split_at_the_first_colon(void **state)
{
	static const struct {
		const char *word, *module, *symbol;
		enum spec_kind kind;
		unsigned int line;
	} rows[] = {
		{ "libc.so.6:getpid", "libc.so.6", "getpid", SPEC_SYMBOL, 0 },
		{ ":main", "", "main", SPEC_SYMBOL, 0 },
		{ "/usr/lib/a/b.so:f", "/usr/lib/a/b.so", "f", SPEC_SYMBOL, 0 },
		{ "lib:ns::f(int)", "lib", "ns::f(int)", SPEC_SYMBOL, 0 },
		{ "lib:operator==(a, b)", "lib", "operator==(a, b)", SPEC_SYMBOL, 0 },
		{ "libc.so.6:memcpy@GLIBC_2.14", "libc.so.6", "memcpy@GLIBC_2.14", SPEC_SYMBOL, 0 },
		{ "lib:f+0x10", "lib", "f+0x10", SPEC_SYMBOL, 0 },
		{ "lib:0x1234", "lib", "0x1234", SPEC_SYMBOL, 0 },
		{ "7z.so:main", "7z.so", "main", SPEC_SYMBOL, 0 },
		{ "-odd:f", "-odd", "f", SPEC_SYMBOL, 0 },
		{ "lib:=a[0]*", "lib", "a[0]*", SPEC_LITERAL, 0 },
		{ ":=main", "", "main", SPEC_LITERAL, 0 },
		{ "lib:@dir/a.c:12", "lib", "dir/a.c", SPEC_LINE, 12 },
		{ "lib:@a:b.c:7", "lib", "a:b.c", SPEC_LINE, 7 },
		{ "py:vllm.*:Scheduler.schedule", "vllm.*", "Scheduler.schedule", SPEC_PYTHON, 0 },
		{ "py:*/x.py:f.<locals>.g", "*/x.py", "f.<locals>.g", SPEC_PYTHON, 0 },
		{ "pylib:f", "pylib", "f", SPEC_SYMBOL, 0 },
		{ "Every=1:f", "Every=1", "f", SPEC_SYMBOL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spec_list list = { 0 };

		assert_int_equal(parse(rows[i].word, &list, NULL), 0);
		assert_int_equal(list.count, 1);
		assert_string_equal(list.spec[0].text, rows[i].word);
		assert_string_equal(list.spec[0].module, rows[i].module);
		assert_string_equal(list.spec[0].symbol, rows[i].symbol);
		assert_int_equal(list.spec[0].kind, rows[i].kind);
		assert_int_equal(list.spec[0].line, rows[i].line);
		assert_true(list.spec[0].delay_ns == SPEC_DELAY_UNSET);
		spec_list_free(&list);
	}
}

static void test_delay_and_keys_belong_to_the_target_before(void **state)
{
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(parse("a:b|5us|every=3|start=1s|for=2m|pid=7|thread=x:y*|c:d|0|e:f|.5us",
			       &list, NULL),
			 0);
	assert_int_equal(list.count, 3);
	assert_int_equal(list.spec[0].delay_ns, 5000);
	assert_int_equal(list.spec[0].every, 3);
	assert_int_equal(list.spec[0].start_ns, 1000000000);
	assert_int_equal(list.spec[0].for_ns, 120000000000);
	assert_int_equal(list.spec[0].pid, 7);
	assert_string_equal(list.spec[0].thread, "x:y*");
	assert_int_equal(list.spec[1].delay_ns, 0);
	assert_int_equal(list.spec[1].every, 0);
	assert_null(list.spec[1].thread);
	assert_int_equal(list.spec[2].delay_ns, 500);
	spec_list_free(&list);
}

static void test_targets_in_the_kernel(void **state)
{
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(parse("kernel:do_futex|arg=op:2|ret=i32|kernel:*nv*sched*|"
			       "tracepoint:sched:sched_switch|0|/boot/kernel:f",
			       &list, NULL),
			 0);
	assert_int_equal(list.spec[0].kind, SPEC_KERNEL);
	assert_string_equal(list.spec[0].symbol, "do_futex");
	assert_int_equal(list.spec[0].delay_ns, 0);
	assert_false(list.spec[0].value[0].typed);
	assert_true(list.spec[0].value[1].typed);
	assert_string_equal(list.spec[1].symbol, "*nv*sched*");
	assert_int_equal(list.spec[2].kind, SPEC_TRACEPOINT);
	assert_string_equal(list.spec[2].module, "sched");
	assert_string_equal(list.spec[2].symbol, "sched_switch");
	assert_int_equal(list.spec[3].kind, SPEC_SYMBOL);
	assert_int_equal(list.spec[3].delay_ns, SPEC_DELAY_UNSET);
	spec_list_free(&list);
	assert_int_not_equal(parse("kernel:", &list, NULL), 0);
	assert_int_not_equal(parse("kernel:a:b", &list, NULL), 0);
	assert_int_not_equal(parse("tracepoint:sched_switch", &list, NULL), 0);
	assert_int_not_equal(parse("tracepoint:sched:", &list, NULL), 0);
	assert_int_not_equal(parse("tracepoint:a:b|ret", &list, NULL), 0);
	assert_int_not_equal(parse("kernel:f|arg=x:1@8", &list, NULL), 0);
}

static void test_requests_to_devices(void **state)
{
	static const char *const wrong[] = { "ioctl:",		"ioctl:/dev/",
					     "ioctl:*",		"ioctl:a*b",
					     "ioctl:a?",	"ioctl:a:b",
					     "ioctl:dri/card0", "ioctl:a|arg=x:1",
					     "ioctl:a|ret",	"ioctl:123456789012345" };
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(parse("ioctl:nvidia*|ioctl:/dev/kvm|ioctl:12345678901234*", &list, NULL),
			 0);
	assert_int_equal(list.spec[0].kind, SPEC_IOCTL);
	assert_true(spec_in_kernel(&list.spec[0]));
	assert_string_equal(list.spec[0].symbol, "nvidia*");
	assert_int_equal(list.spec[0].delay_ns, 0);
	assert_string_equal(list.spec[1].symbol, "kvm");
	spec_list_free(&list);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_not_equal(parse(wrong[i], &list, NULL), 0);
}

static void test_interrupts_and_switches(void **state)
{
	static const char *const wrong[] = { "interrupt:",
					     "interrupt:*",
					     "interrupt:a*b",
					     "interrupt:123456789012345",
					     "interrupt:a|arg=x:1",
					     "interrupt:a|kthreads=yes",
					     "offcpu:",
					     "offcpu:**",
					     "offcpu:a?",
					     "offcpu:*|ret",
					     "kernel:f|kthreads=maybe",
					     "libc.so.6:f|kthreads=yes" };
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(
		parse("interrupt:nvidia*|offcpu:*|offcpu:kworker/0:1|kernel:f|kthreads=yes|"
		      "tracepoint:a:b|kthreads=no|interruptible:f",
		      &list, NULL),
		0);
	assert_int_equal(list.spec[0].kind, SPEC_INTERRUPT);
	assert_string_equal(list.spec[0].symbol, "nvidia*");
	assert_int_equal(list.spec[1].kind, SPEC_OFFCPU);
	assert_string_equal(list.spec[1].symbol, "*");
	assert_string_equal(list.spec[2].symbol, "kworker/0:1");
	for (size_t i = 0; i < 5; i++) {
		assert_true(spec_in_kernel(&list.spec[i]));
		assert_int_equal(list.spec[i].delay_ns, 0);
		assert_int_equal(list.spec[i].kthreads, i == 3);
	}
	assert_int_equal(list.spec[5].kind, SPEC_SYMBOL);
	spec_list_free(&list);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_not_equal(parse(wrong[i], &list, NULL), 0);
}

static void test_values_of_a_call(void **state)
{
	static const struct spec_value expected[] = {
		{ "fd", 1, 0, false, false, VALUE_I32, false, false, true },
		{ "_b2", 6, 0, false, false, VALUE_U64, true, false, true },
		{ "p", 3, 0, false, false, VALUE_PTR, false, false, true },
		{ "ret", 0, 0, false, false, VALUE_I64, true, false, false },
		{ "y", 2, 4, false, false, VALUE_U32, false, false, true },
		{ "last", 11, 0, false, false, VALUE_I64, true, false, false },
		{ "half", 10, 4, false, false, VALUE_BOOL, false, false, true },
		{ "deep", 3, 36, true, false, VALUE_U16, false, false, true },
		{ "word", 3, 8, true, false, VALUE_PTR, false, false, true },
	};
	const struct spec_value *value[9];
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(parse("a:b|arg=fd:1:i32|arg=_b2:6:u64|sum=_b2|arg=p:3:ptr|ret|5us|sum=ret|"
			       "c:d|arg=n:2|e:f|time=yes|ret=bool|g:h|ret=bytes|i:j|ret=n:u8|sum=n|"
			       "k:l|arg=y:2+4:u32|arg=last:11|sum=last|arg=half:10+4:bool|"
			       "m:n|arg=deep:3@36:u16|arg=word:3@8:ptr",
			       &list, NULL),
			 0);
	assert_int_equal(list.count, 7);
	assert_int_equal(list.spec[0].n_values, 4);
	assert_int_equal(list.spec[5].n_values, 3);
	assert_int_equal(list.spec[6].n_values, 2);
	for (size_t i = 0; i < 9; i++) {
		value[i] = i < 4 ? &list.spec[0].value[i] :
			   i < 7 ? &list.spec[5].value[i - 4] :
				   &list.spec[6].value[i - 7];
		assert_string_equal(value[i]->name, expected[i].name);
		assert_int_equal(value[i]->position, expected[i].position);
		assert_int_equal(value[i]->offset, expected[i].offset);
		assert_int_equal(value[i]->memory, expected[i].memory);
		assert_int_equal(value[i]->type, expected[i].type);
		assert_int_equal(value[i]->sum, expected[i].sum);
	}
	assert_int_equal(value_followed(&list.spec[5]), 0);
	assert_int_equal(value_followed(&list.spec[6]), 3);
	assert_true(list.spec[0].timed);
	assert_int_equal(list.spec[0].delay_ns, 5000);
	assert_int_equal(list.spec[1].value[0].type, VALUE_I64);
	assert_int_equal(list.spec[2].value[0].type, VALUE_BOOL);
	assert_string_equal(list.spec[3].value[0].name, "bytes");
	assert_string_equal(list.spec[4].value[0].name, "n");
	assert_int_equal(list.spec[4].value[0].type, VALUE_U8);
	spec_list_free(&list);
}

static void test_texts_of_a_call(void **state)
{
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(
		parse("a:b|arg=n:1|arg=path:2@exit|ret=i32|c:d|arg=_s:6@exit:str", &list, NULL), 0);
	assert_int_equal(list.spec[0].n_values, 3);
	assert_true(list.spec[0].value[1].text && list.spec[0].value[1].memory);
	assert_int_equal(list.spec[0].value[1].type, VALUE_STR);
	assert_false(list.spec[0].value[0].text);
	assert_int_equal(value_followed(&list.spec[0]), 7);
	assert_int_equal(value_text_of(&list.spec[0]), 2);
	assert_int_equal(value_text_of(&list.spec[1]), 6);
	spec_list_free(&list);
}

static const struct {
	const char *line, *word, *why;
} wrong_values[] = {
	{ "a:b|arg=", "arg=", "no position" },
	{ "a:b|arg=x", "arg=x", "no position" },
	{ "a:b|arg=x:", "arg=x:", "no position" },
	{ "a:b|arg=x:0", "arg=x:0", "no position" },
	{ "a:b|arg=x:-1", "arg=x:-1", "no position" },
	{ "a:b|arg=x:1y", "arg=x:1y", "no position" },
	{ "a:b|arg=x:12", "arg=x:12", "too far" },
	{ "a:b|arg=x:07", "arg=x:07", "no position" },
	{ "a:b|arg=x:100", "arg=x:100", "no position" },
	{ "a:b|arg=x:2+", "arg=x:2+", "half of a word" },
	{ "a:b|arg=x:2+8", "arg=x:2+8", "half of a word" },
	{ "a:b|arg=x:2+4", "arg=x:2+4", "one word" },
	{ "a:b|arg=x:2+4:ptr", "arg=x:2+4:ptr", "one word" },
	{ "a:b|arg=x:2+4x", "arg=x:2+4x", "no position" },
	{ "a:b|arg=x:2@", "arg=x:2@", "no place in memory" },
	{ "a:b|arg=x:2@3:u32", "arg=x:2@3:u32", "no place in memory" },
	{ "a:b|arg=x:2@40:u32", "arg=x:2@40:u32", "no place in memory" },
	{ "a:b|arg=x:2@4:u64", "arg=x:2@4:u64", "one word" },
	{ "a:b|arg=x:7@0", "arg=x:7@0", "points to no memory" },
	{ "a:b|arg=x:7@exit", "arg=x:7@exit", "points to no memory" },
	{ "a:b|arg=x:0@exit", "arg=x:0@exit", "no position" },
	{ "a:b|arg=x:@exit", "arg=x:@exit", "no position" },
	{ "a:b|arg=x:2@exits", "arg=x:2@exits", "no position" },
	{ "a:b|arg=x:2@exit:", "arg=x:2@exit:", "unknown type" },
	{ "a:b|arg=x:2@exit:ptr", "arg=x:2@exit:ptr", "is of type str" },
	{ "a:b|arg=x:2:str", "arg=x:2:str", "only what stands behind @exit" },
	{ "a:b|ret=str", "ret=str", "only what stands behind @exit" },
	{ "a:b|arg=x:2@exit|arg=y:3@exit", "arg=y:3@exit", "memory of one" },
	{ "a:b|arg=x:2@exit|arg=y:2@0", "arg=y:2@0", "memory of one" },
	{ "a:b|arg=x:8|arg=y:2@exit", "arg=y:2@exit", "memory of one" },
	{ "a:b|arg=x:2@exit|sum=x", "sum=x", "sums a string" },
	{ "a:b|arg=x:7|arg=y:1@0", "arg=y:1@0", "memory of one" },
	{ "a:b|arg=x:2@0|arg=y:1@0", "arg=y:1@0", "memory of one" },
	{ "a:b|arg=:1", "arg=:1", "names no value" },
	{ "a:b|arg=1x:1", "arg=1x:1", "names no value" },
	{ "a:b|arg=a-b:1", "arg=a-b:1", "names no value" },
	{ "a:b|arg=a2345678901234567890123456789012:1", "arg=a2", "names no value" },
	{ "a:b|arg=thread:1", "arg=thread:1", "use themselves" },
	{ "a:b|arg=x:1:", "arg=x:1:", "unknown type" },
	{ "a:b|arg=x:1:int", "arg=x:1:int", "unknown type" },
	{ "a:b|arg=x:1:i320", "arg=x:1:i320", "unknown type" },
	{ "a:b|arg=x:1|arg=x:2", "arg=x:2", "a name twice" },
	{ "a:b|ret|arg=ret:2", "arg=ret:2", "a name twice" },
	{ "a:b|ret|ret=n", "ret=n", "twice" },
	{ "a:b|ret=", "ret=", "names no value" },
	{ "a:b|ret=n:x", "ret=n:x", "unknown type" },
	{ "a:b|arg=a:1|arg=b:2|arg=c:3|arg=d:4|arg=e:5|arg=f:6|arg=g:7|arg=h:8|arg=i:9|"
	  "arg=j:10|arg=k:11|arg=l:1|ret",
	  "ret", "too many" },
	{ "a:b|sum=n", "sum=n", "names no value" },
	{ "a:b|sum=ret|ret", "sum=ret", "names no value" },
	{ "a:b|sum=", "sum=", "names no value" },
	{ "a:b|arg=n:1|sum=n|sum=n", "sum=n", "twice" },
	{ "a:b|arg=n:1:ptr|sum=n", "sum=n", "sums a pointer" },
	{ "a:b|time=no|ret", "ret", "time=no" },
	{ "a:b|ret|time=no", "time=no", "exclude each other" },
	{ "a:b|ret|at=exit", "at=exit", "exclude each other" },
	{ "a:b|at=both|ret", "ret", "at=exit or at=both" },
	{ "a:b|ret|inline=yes", "inline=yes", "exclude each other" },
	{ "a:b|inline=yes|arg=x:1", "arg=x:1", "inline=yes" },
	{ "py:a:b|arg=x:1", "arg=x:1", "native function" },
	{ "py:a:b|ret", "ret", "native function" },
	{ "a:@x.c:12|ret", "ret", "native function" },
	{ "ret|a:b", "ret", "before any target" },
	{ "a:b|arg", "arg", "neither a target" },
};

static void test_wrong_values_are_refused_with_the_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong_values) / sizeof(wrong_values[0]); i++) {
		struct spec_list list = { 0 };
		struct sb_err err = { 0 };

		assert_int_equal(parse(wrong_values[i].line, &list, &err), -SB_ESPEC);
		assert_non_null(strstr(err.what, wrong_values[i].word));
		assert_non_null(strstr(err.what, wrong_values[i].why));
		assert_true(*err_remedy(&err));
		assert_int_equal(list.count, 0);
		spec_list_free(&list);
	}
}

static void test_errors_name_the_word_and_append_nothing(void **state)
{
	static const struct {
		const char *line, *word;
	} rows[] = {
		{ "a:b|5", "5" },
		{ "a:b|5xs", "5xs" },
		{ "a:b|-5us", "-5us" },
		{ "a:b|+5us", "+5us" },
		{ "a:b|0x5", "0x5" },
		{ "a:b|1e3ns", "1e3ns" },
		{ "5us|a:b", "5us" },
		{ "every=2|a:b", "every=2" },
		{ "nan", "nan" },
		{ "a:b|evry=2", "evry=2" },
		{ "a:b|every=0", "every=0" },
		{ "main", "main" },
		{ "a:b|every=-1", "every=-1" },
		{ "a:b|every=99999999999999999999", "every=9" },
		{ "a:b|every=2|every=2", "every=2" },
		{ "a:b|1us|2us", "2us" },
		{ "a:b|pid=0", "pid=0" },
		{ "a:b|pid=2147483648", "pid=2147483648" },
		{ "a:b|pid=x", "pid=x" },
		{ "a:b|thread=", "thread=" },
		{ "a:b|start=5", "start=5" },
		{ "a:b|for=0", "for=0" },
		{ "a:", "a:" },
		{ ":", ":" },
		{ "a:=", "a:=" },
		{ "a:@", "a:@" },
		{ "a:@x.c", "a:@x.c" },
		{ "a:@x.c:0", "a:@x.c:0" },
		{ "a:@x.c:-1", "a:@x.c:-1" },
		{ "a:@:5", "a:@:5" },
		{ "a:@x.c:9999999999", "x.c:9999999999" },
		{ "py:a", "py:a" },
		{ "py::f", "py::f" },
		{ "py:a:", "py:a:" },
		{ "py:a:b:c", "py:a:b:c" },
		{ "ns::f", "ns::f" },
		{ "a:b|a:b", "a:b" },
		{ "a:b|pid=1|a:b|pid=1", "a:b" },
		{ "x:y", "x:y" },
		{ "a:b|--json", "--json" },
		{ "a:\x1b[2Jb|a:\x1b[2Jb", "a:\\x1b[2Jb" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spec_list list = { 0 };
		struct sb_err err = { 0 };

		assert_int_equal(parse("x:y|1us", &list, NULL), 0);
		assert_int_equal(parse(rows[i].line, &list, &err), -SB_ESPEC);
		assert_non_null(strstr(err.what, rows[i].word));
		assert_true(*err_remedy(&err));
		assert_int_equal(list.count, 1);
		spec_list_free(&list);
	}
}

static void test_same_target_for_another_process(void **state)
{
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(parse("a:b|pid=1|a:b|pid=2|a:b", &list, NULL), 0);
	assert_int_equal(list.count, 3);
	spec_list_free(&list);
	assert_int_equal(parse("a:b|thread=x|a:b|thread=y", &list, NULL), -SB_ESPEC);
	spec_list_free(&list);
}

static void test_overlong_word_is_cut_at_a_character(void **state)
{
	char word[2001];
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		memcpy(word + 2 * i, "\xc3\xa9", 2);
	word[2000] = '\0';
	assert_int_equal(parse(word, &list, &err), -SB_ESPEC);
	assert_non_null(strstr(err.what, "\xc3\xa9...'"));
}

static int parse_text(const char *text, size_t len, struct spec_list *list, struct sb_err *err)
{
	return spec_parse_text(text, len, "t.txt", list, err);
}

static void test_file_quotes_comments_crlf_and_bom(void **state)
{
	static const char text[] = "\xef\xbb\xbf# heading\r\n"
				   "libc.so.6:getpid 5us # each\r\n"
				   "\r\n"
				   "   \t\n"
				   "'lib:f(int, char)' 1ms\n"
				   "\"lib:say(\\\"x\\\", \\n)\" thread='a b'\"c\"\\ d#e\n"
				   "lib:g\\(a,\\ b\\)\t#\n"
				   "lib:last";
	struct spec_list list = { 0 };

	(void)state;
	assert_int_equal(parse_text(text, sizeof(text) - 1, &list, NULL), 0);
	assert_int_equal(list.count, 5);
	assert_int_equal(list.spec[0].delay_ns, 5000);
	assert_string_equal(list.spec[1].symbol, "f(int, char)");
	assert_string_equal(list.spec[2].symbol, "say(\"x\", \\n)");
	assert_string_equal(list.spec[2].thread, "a bc d#e");
	assert_string_equal(list.spec[3].symbol, "g(a, b)");
	assert_string_equal(list.spec[4].symbol, "last");
	spec_list_free(&list);
}

static void test_file_errors_carry_the_line(void **state)
{
	static const struct {
		const char *text, *prefix;
	} rows[] = {
		{ "a:b\n\nc:d 5\n", "t.txt:3: " },
		{ "a:b\n'c:d\n", "t.txt:2: " },
		{ "a:b \"\n", "t.txt:1: " },
		{ "a:b\nc:d \\\n", "t.txt:2: " },
		{ "a:b\nc:d e:f\n", "t.txt:2: " },
		{ "a:b\n5us\n", "t.txt:2: " },
		{ "a:b\nc:d ''\n", "t.txt:2: " },
		{ "a:b\r\na:b", "t.txt:2: " },
		{ "", "t.txt: " },
		{ "# nothing\n\n", "t.txt: " },
		{ "a:f(int, char)\n", "t.txt:1: " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spec_list list = { 0 };
		struct sb_err err = { 0 };

		assert_int_equal(parse_text(rows[i].text, strlen(rows[i].text), &list, &err),
				 -SB_ESPEC);
		assert_memory_equal(err.what, rows[i].prefix, strlen(rows[i].prefix));
		assert_true(*err_remedy(&err));
		assert_int_equal(list.count, 0);
		spec_list_free(&list);
	}
}

static void test_file_with_a_nul_byte_is_refused(void **state)
{
	static const char text[] = "a:b\nc:d\0e\n";
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };

	(void)state;
	assert_int_equal(parse_text(text, sizeof(text) - 1, &list, &err), -SB_ESPEC);
	assert_non_null(strstr(err.what, "t.txt:2: "));
	spec_list_free(&list);
}

static void test_read_file_missing_directory_empty_and_pipe(void **state)
{
	char dir[] = "/tmp/sbinject-spec.XXXXXX", path[64];
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };
	int ends[2];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(spec_read_file(dir, &list, &err), -SB_EFILE);
	assert_non_null(strstr(err.what, "is a directory"));
	snprintf(path, sizeof(path), "%s/none", dir);
	err = (struct sb_err){ 0 };
	assert_int_equal(spec_read_file(path, &list, &err), -SB_EFILE);
	assert_true(err.sys_errno != 0 && *err_remedy(&err));
	close(open(path, O_WRONLY | O_CREAT, 0600));
	err = (struct sb_err){ 0 };
	assert_int_equal(spec_read_file(path, &list, &err), -SB_ESPEC);
	assert_non_null(strstr(err.what, path));
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "a:b 5us\n", 8), 8);
	close(ends[1]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	assert_int_equal(spec_read_file(path, &list, NULL), 0);
	assert_int_equal(list.count, 1);
	spec_list_free(&list);
	close(ends[0]);
	snprintf(path, sizeof(path), "%s/none", dir);
	unlink(path);
	rmdir(dir);
}

static void test_many_targets_from_a_file(void **state)
{
	struct spec_list list = { 0 };
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < 2000; i++)
		fprintf(to, "lib:f%d 1us\n", i);
	fclose(to);
	assert_int_equal(parse_text(text, size, &list, NULL), 0);
	assert_int_equal(list.count, 2000);
	assert_string_equal(list.spec[1999].symbol, "f1999");
	spec_list_cut(&list, 3);
	assert_int_equal(list.count, 3);
	assert_int_equal(parse("x:y", &list, NULL), 0);
	spec_list_free(&list);
	free(text);
}

static void test_pids(void **state)
{
	static const char *const bad[] = {
		"",	" \n",	 ",",	"0",	      "-1",
		"12,x", "12 -3", "1.5", "2147483648", "99999999999999999999",
		"12;13"
	};
	struct sb_err err = { 0 };
	pid_t *pids = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(spec_pids("12,13 14\n15\n", &pids, &count, NULL), 0);
	assert_int_equal(spec_pids(" 13,,99 ", &pids, &count, NULL), 0);
	assert_int_equal(count, 5);
	assert_int_equal(pids[0], 12);
	assert_int_equal(pids[4], 99);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct sb_err){ 0 };
		assert_int_equal(spec_pids(bad[i], &pids, &count, &err), -SB_EUSAGE);
		assert_int_equal(count, 5);
		assert_true(*err_remedy(&err));
	}
	free(pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets_split_at_the_first_colon),
		cmocka_unit_test(test_delay_and_keys_belong_to_the_target_before),
		cmocka_unit_test(test_targets_in_the_kernel),
		cmocka_unit_test(test_requests_to_devices),
		cmocka_unit_test(test_interrupts_and_switches),
		cmocka_unit_test(test_values_of_a_call),
		cmocka_unit_test(test_texts_of_a_call),
		cmocka_unit_test(test_wrong_values_are_refused_with_the_reason),
		cmocka_unit_test(test_errors_name_the_word_and_append_nothing),
		cmocka_unit_test(test_same_target_for_another_process),
		cmocka_unit_test(test_overlong_word_is_cut_at_a_character),
		cmocka_unit_test(test_file_quotes_comments_crlf_and_bom),
		cmocka_unit_test(test_file_errors_carry_the_line),
		cmocka_unit_test(test_file_with_a_nul_byte_is_refused),
		cmocka_unit_test(test_read_file_missing_directory_empty_and_pipe),
		cmocka_unit_test(test_many_targets_from_a_file),
		cmocka_unit_test(test_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
