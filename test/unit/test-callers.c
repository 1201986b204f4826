/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * Callers by copied stacks: those of this very process, as the C library's unwinder has them; and
 * whatever a target may send, no more than is kept, with a reason for its end.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>
#include "inject/page-abi.h"
#include "src/base/maps.h"
#include "src/run/callers.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { DEPTH = 8, WORDS = 4096, FRAMES = 64 };

/* A message as it comes through the pipe. */
static struct {
	struct trace_stack_head head;
	uint64_t word[WORDS];
} sent;

static uint64_t stack_end;
static size_t copied; /* words of the stack */
static void *truth[FRAMES];
static int n_truth;
static struct callers *callers;

static int setup(void **state)
{
	(void)state;
	callers = callers_open();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	callers_close(callers);
	return 0;
}

static void send_maps(void)
{
	static char text[1 << 18];
	int32_t pid = getpid();
	FILE *maps = fopen("/proc/self/maps", "r");
	size_t n;

	assert_non_null(maps);
	memcpy(text, &pid, sizeof(pid));
	n = fread(text + sizeof(pid), 1, sizeof(text) - sizeof(pid), maps);
	fclose(maps);
	callers_maps(callers, text, n + sizeof(pid));
}

static uint64_t (*volatile deeper)(int, uint64_t);

/* Copies its stack as a stub does: the registers of its caller, from the return address on. */
static __attribute__((noinline, no_sanitize_address)) uint64_t descend(int depth, uint64_t a)
{
	volatile uint8_t room[64];
	ucontext_t u;

	room[depth] = (uint8_t)a;
	if (depth)
		return deeper(depth - 1, a * 3) + room[depth];
	n_truth = backtrace(truth, FRAMES);
	getcontext(&u);
	sent.head = (struct trace_stack_head){
		.pid = getpid(),
		.end = SB_STACK_CUT,
		.sp = (uint64_t)u.uc_mcontext.gregs[REG_RSP] - 8,
		.bp = (uint64_t)u.uc_mcontext.gregs[REG_RBP],
		.bx = (uint64_t)u.uc_mcontext.gregs[REG_RBX],
	};
	for (int i = 0; i < 4; i++)
		sent.head.r12[i] = (uint64_t)u.uc_mcontext.gregs[REG_R12 + i];
	/* As if this function had been called by itself, here: its own place is the first frame. */
	sent.word[0] = (uint64_t)u.uc_mcontext.gregs[REG_RIP];
	copied = 1;
	for (; copied < WORDS && sent.head.sp + 8 * copied < stack_end; copied++)
		sent.word[copied] = ((const volatile uint64_t *)sent.head.sp)[copied];
	return a;
}

static void take_stack(void)
{
	struct maps maps = { 0 };

	assert_int_equal(maps_read(getpid(), &maps, NULL), 0);
	stack_end = maps_find(&maps, (uint64_t)(uintptr_t)&maps)->end;
	maps_free(&maps);
	deeper = descend;
	descend(DEPTH, 0);
	assert_true(n_truth > DEPTH + 1);
}

static const struct trace_stack *found(size_t words)
{
	sent.head.size = (uint32_t)words * 8;
	callers_stack(callers, (const char *)&sent, sizeof(sent.head) + words * 8);
	return callers_take(callers);
}

static void callers_are_found(void **state)
{
	const struct trace_stack *s;

	(void)state;
	if (SANITIZED) /* its own backtrace() has other frames */
		skip();
	take_stack();
	send_maps();
	s = found(copied);
	assert_non_null(s);
	assert_null(s->end);
	assert_int_equal(s->n, n_truth);
	for (int i = 1; i < n_truth; i++) {
		const char *at = strrchr(s->frame[i], '+'), *module;
		Dl_info info;

		assert_true(dladdr(truth[i], &info) && at);
		module = strrchr(info.dli_fname, '/');
		module = module ? module + 1 : info.dli_fname;
		assert_memory_equal(s->frame[i], module, strlen(module));
		if (i <= DEPTH)
			assert_non_null(strstr(s->frame[i], ":descend+0x"));
	}
	assert_null(callers_take(callers)); /* once */
}

/* Of less there are fewer, the same ones, and it says why. */
static void a_cut_stack_says_so(void **state)
{
	char whole[FRAMES][256];
	uint32_t n, most = 0;

	(void)state;
	take_stack();
	send_maps();
	n = found(copied)->n;
	for (uint32_t i = 0; i < n; i++)
		snprintf(whole[i], sizeof(whole[i]), "%s", found(WORDS)->frame[i]);
	for (size_t words = 1; words < 500; words += 3) {
		const struct trace_stack *s = found(words);

		assert_true(s->n >= most && s->n < n);
		most = s->n;
		for (uint32_t i = 0; i < s->n; i++)
			assert_string_equal(s->frame[i], whole[i]);
		assert_non_null(strstr(s->end, "truncated"));
	}
	assert_true(most > 1);
	sent.head.end = SB_STACK_PAGE;
	assert_non_null(strstr(found(8)->end, "not known"));
}

static void without_maps(void **state)
{
	const struct trace_stack *s;

	(void)state;
	take_stack();
	s = found(WORDS);
	assert_int_equal(s->n, 0);
	assert_non_null(strstr(s->end, "before its maps were read"));
	send_maps();
	sent.word[0] = 0x1234;
	s = found(WORDS);
	assert_int_equal(s->n, 1);
	assert_string_equal(s->frame[0], "[0x1234]");
	assert_non_null(strstr(s->end, "in no file"));
	assert_null(callers_take(callers));
	sent.head.size = 7;
	callers_stack(callers, (const char *)&sent, sizeof(sent.head) + 7);
	assert_null(callers_take(callers));
}

static uint64_t random_now = 88172645463325252ull;

static uint64_t next_random(void)
{
	random_now ^= random_now << 13;
	random_now ^= random_now >> 7;
	return random_now ^= random_now << 17;
}

/* Words that point into code and into the stack, at random: an end, and never a fault. */
static void nonsense_ends(void **state)
{
	size_t frames = 0;

	(void)state;
	take_stack();
	send_maps();
	for (int round = 0; round < 20000; round++) {
		const struct trace_stack *s;

		for (int i = 0; i < 40; i++) {
			uint64_t *word = &sent.word[next_random() % 200];
			uint64_t code =
				(uint64_t)(uintptr_t)truth[next_random() % (uint64_t)n_truth];

			*word = next_random() % 3 ? code + next_random() % 4096 :
						    sent.head.sp + next_random() % 4096;
		}
		sent.head.bp = sent.head.sp + next_random() % 2048;
		sent.head.bx = next_random();
		sent.head.end = (uint32_t)(next_random() % 4);
		s = found(1 + next_random() % 300);
		assert_true(s->n <= TRACE_FRAMES_MAX);
		frames += s->n;
	}
	assert_true(frames > 20000);
}

/* The files of a process that has ended are those that another one has opened; else it says so. */
static void maps_of_a_process_that_is_gone(void **state)
{
	static char text[256];
	const struct trace_stack *s;
	int32_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	memcpy(text, &pid, sizeof(pid));
	snprintf(text + sizeof(pid), sizeof(text) - sizeof(pid),
		 "400000-500000 r-xp 00000000 08:01 99999999 /no/such.so\n");
	callers_maps(callers, text, sizeof(pid) + strlen(text + sizeof(pid)));
	sent.head.pid = pid;
	sent.word[0] = 0x401234;
	s = found(WORDS);
	assert_int_equal(s->n, 1);
	assert_string_equal(s->frame[0], "such.so+0x1234");
	assert_non_null(strstr(s->end, "cannot be read: such.so"));
	callers_maps(callers, text, sizeof(pid)); /* it is gone */
	assert_int_equal(found(WORDS)->n, 0);
	for (size_t n = 0; n < 60; n++) /* cut anywhere */
		callers_maps(callers, text, n);
	callers_maps(callers, "\1\0\0\0nonsense\n", 13);
}

/* ---- Python frames ---- */

static struct {
	uint64_t word[512];
	size_t n;
} py;

static void py_text(const char *name, const char *file)
{
	char *to = (char *)&py.word[py.n];
	size_t size = strlen(name) + strlen(file);

	memset(to, 0, size + 8);
	memcpy(stpcpy(to, name), file, strlen(file));
	py.n += (size + 7) / 8;
}

/* Returns its place, for other frames of the same file. */
static size_t py_frame(const char *name, const char *file, size_t same, uint32_t line)
{
	size_t at = py.n;
	uint64_t file_word = file ? strlen(file) : SB_FRAME_SAME | same;

	py.word[py.n++] = 0;
	py.word[py.n++] = line | (uint64_t)strlen(name) << 32 | file_word << 48;
	py_text(name, file ? file : "");
	return at;
}

/* The stack of this process, and these frames. */
static const struct trace_stack *found_python(size_t words, uint32_t end)
{
	static char message[sizeof(sent) + sizeof(py)];
	size_t size = offsetof(__typeof__(sent), word) + 8 * words;

	sent.head.size = (uint32_t)words * 8;
	sent.head.frames_end = end;
	memcpy(message, &sent, size);
	memcpy(message + size, py.word, 8 * py.n);
	callers_stack(callers, message, size + 8 * py.n);
	return callers_take(callers);
}

/*
 * They stand for the frame that their place is in; without a place, behind all native ones. A frame
 * of descend() has more than 64 bytes.
 */
static void python_frames_in_their_places(void **state)
{
	char native[FRAMES][256];
	const struct trace_stack *s;
	uint32_t n;
	size_t at;

	(void)state;
	if (SANITIZED)
		skip();
	take_stack();
	send_maps();
	s = found(copied);
	n = s->n;
	for (uint32_t i = 0; i < n; i++)
		snprintf(native[i], sizeof(native[i]), "%s", s->frame[i]);
	py.n = 0;
	at = py_frame("inner", "/a/b.py", 0, 7);
	py_frame("Outer.middle", NULL, at, 0);
	py.word[py.n++] = sent.head.sp + 16; /* in its caller's frame */
	py_frame("last", "c.py", 0, 1);
	s = found_python(copied, SB_FRAMES_ALL);
	assert_int_equal(s->n, n - 1 + 2 + 1);
	assert_string_equal(s->frame[0], "py:inner (/a/b.py:7)");
	assert_string_equal(s->frame[1], "py:Outer.middle (/a/b.py:?)");
	for (uint32_t i = 1; i < n; i++)
		assert_string_equal(s->frame[i + 1], native[i]);
	assert_string_equal(s->frame[n + 1], "py:last (c.py:1)");
	assert_non_null(strstr(s->end, "there are only those of Python"));
	/* Without a copy of the stack, they are all. */
	s = found_python(0, SB_FRAMES_ALL);
	assert_int_equal(s->n, 3);
	assert_null(s->end);
	s = found_python(0, SB_FRAMES_FULL);
	assert_non_null(strstr(s->end, "more Python frames"));
	py.n = 0;
	s = found_python(copied, SB_FRAMES_FAULT);
	assert_int_equal(s->n, n);
	assert_string_equal(s->end, "Python frames are not known: they could not be read");
	assert_null(found_python(copied, SB_FRAMES_NONE)->end);
}

static void damaged_python_frames(void **state)
{
	uint64_t whole[512];
	size_t at;

	(void)state;
	take_stack();
	send_maps();
	py.n = 0;
	at = py_frame("a", "/some/where.py", 0, 3);
	for (int i = 0; i < 20; i++)
		py_frame("bcd", NULL, at, 4);
	memcpy(whole, py.word, sizeof(whole));
	for (int round = 0; round < 20000; round++) {
		size_t n = py.n;
		const struct trace_stack *s;

		memcpy(py.word, whole, sizeof(whole));
		for (int i = 0; i < 3; i++)
			py.word[next_random() % n] ^= 1ull << next_random() % 64;
		py.n = next_random() % 4 ? n : next_random() % n;
		s = found_python(round % 2 ? copied : 0, (uint32_t)(next_random() % 8));
		assert_true(s && s->n <= TRACE_FRAMES_MAX);
		for (uint32_t i = 0; i < s->n; i++)
			assert_true(*s->frame[i]);
		py.n = n;
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(callers_are_found),
		TEST(a_cut_stack_says_so),
		TEST(without_maps),
		TEST(nonsense_ends),
		TEST(python_frames_in_their_places),
		TEST(damaged_python_frames),
		TEST(maps_of_a_process_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
