/* SPDX-License-Identifier: MIT */
/*
 * shapes [ROUNDS [GATE]]: uses of a function that a hook at its entry must not disturb, each
 * with a count and a check of its own: recursion, tail calls, longjmp through it, a backtrace
 * taken below it, many arguments in every register and on the stack, floating point and vector
 * arguments, variadic calls, a signal handler on the smallest alternate stack.
 */
#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include "victim.h"

uint64_t shape_recurse(uint64_t n);
uint64_t shape_tail(uint64_t n);
uint64_t shape_tailed(uint64_t n);
void shape_jump(jmp_buf env, int value);
int shape_frames(int *depth);
uint64_t shape_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
		    uint64_t g, uint64_t h);
double shape_float(double a, double b, double c, double d, double e, double f, double g, double h);
long shape_variadic(int n, ...);
struct big shape_struct(uint64_t seed);

struct big {
	uint64_t word[9];
};

static uint64_t n_recurse, n_tail, n_tailed, n_jump, n_frames, n_many, n_float, n_variadic,
	n_struct;
static bool ok = true;

static void check(bool good, const char *what)
{
	if (!good && ok)
		fprintf(stderr, "shapes: %s went wrong\n", what);
	ok = ok && good;
}

VICTIM_HOOKED uint64_t shape_recurse(uint64_t n)
{
	uint64_t below;

	n_recurse++;
	VICTIM_OPAQUE(n);
	if (n == 0)
		return 0;
	below = shape_recurse(n - 1);
	VICTIM_OPAQUE(below); /* or the compiler makes a loop of it */
	return n + below;
}

VICTIM_HOOKED uint64_t shape_tailed(uint64_t n)
{
	n_tailed++;
	VICTIM_OPAQUE(n);
	return n * 2;
}

VICTIM_HOOKED uint64_t shape_tail(uint64_t n)
{
	n_tail++;
	VICTIM_OPAQUE(n);
	return shape_tailed(n + 1);
}

VICTIM_HOOKED void shape_jump(jmp_buf env, int value)
{
	n_jump++;
	VICTIM_OPAQUE(value);
	longjmp(env, value);
}

VICTIM_HOOKED int shape_frames(int *depth)
{
	void *frames[64];

	n_frames++;
	*depth = backtrace(frames, 64);
	VICTIM_OPAQUE(depth);
	return *depth;
}

VICTIM_HOOKED uint64_t shape_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
				  uint64_t f, uint64_t g, uint64_t h)
{
	n_many++;
	VICTIM_OPAQUE(a);
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

VICTIM_HOOKED double shape_float(double a, double b, double c, double d, double e, double f,
				 double g, double h)
{
	n_float++;
	__asm__ volatile("" : : : "memory");
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

VICTIM_HOOKED long shape_variadic(int n, ...)
{
	long sum = 0;
	va_list ap;

	n_variadic++;
	va_start(ap, n);
	for (int i = 0; i < n; i++)
		sum += i % 2 ? (long)va_arg(ap, double) : va_arg(ap, long);
	va_end(ap);
	return sum;
}

VICTIM_HOOKED struct big shape_struct(uint64_t seed)
{
	struct big b;

	n_struct++;
	VICTIM_OPAQUE(seed);
	for (int i = 0; i < 9; i++)
		b.word[i] = seed + (uint64_t)i;
	return b;
}

static void on_sigstack(int sig)
{
	(void)sig;
	check(shape_tail(5) == 12, "a tail call on an alternate stack");
}

static void test_jump(void)
{
	jmp_buf env;
	int got = setjmp(env);

	if (got == 0)
		shape_jump(env, 77);
	check(got == 77, "longjmp");
}

static __attribute__((noinline)) void one_round(uint64_t i)
{
	static int depth; /* as the first round saw it, which is before an attach */
	int now = 0;
	struct big b;

	check(shape_recurse(50) == 50 * 51 / 2, "recursion");
	check(shape_tail(i) == (i + 1) * 2, "a tail call");
	test_jump();
	shape_frames(&now);
	if (!depth)
		depth = now;
	check(now == depth && now > 2, "the backtrace");
	check(shape_many(i, 1, 2, 3, 4, 5, 6, 7) == i + 2 + 6 + 12 + 20 + 30 + 42 + 56,
	      "arguments");
	check(shape_float(1, 2, 3, 4, 5, 6, 7, 8) == 204.0, "floating point arguments");
	check(shape_variadic(6, 1L, 2.0, 3L, 4.0, 5L, 6.0) == 21, "variadic arguments");
	b = shape_struct(i);
	check(b.word[0] == i && b.word[8] == i + 8, "a returned struct");
	if (i % 64 == 0)
		raise(SIGUSR1);
}

static const struct {
	const char *name;
	uint64_t *count;
} counts[] = {
	{ "shape_recurse", &n_recurse }, { "shape_tail", &n_tail },
	{ "shape_tailed", &n_tailed },	 { "shape_jump", &n_jump },
	{ "shape_frames", &n_frames },	 { "shape_many", &n_many },
	{ "shape_float", &n_float },	 { "shape_variadic", &n_variadic },
	{ "shape_struct", &n_struct },
};
enum { N_COUNTS = sizeof(counts) / sizeof(counts[0]) };

static void use_small_sigstack(void)
{
	static char stack[65536];
	struct sigaction sa = { .sa_handler = on_sigstack, .sa_flags = SA_ONSTACK };
	unsigned long min = getauxval(51 /* AT_MINSIGSTKSZ */);
	stack_t ss = { .ss_sp = stack };

	ss.ss_size = (min ? min : 2048) + 1024; /* the frame of the kernel and little more */
	if (ss.ss_size < 2048)
		ss.ss_size = 2048;
	check(sigaltstack(&ss, NULL) == 0, "sigaltstack");
	sigaction(SIGUSR1, &sa, NULL);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;

	victim_catch_term();
	use_small_sigstack();
	one_round(0);
	if (argc > 2) /* what was called before the gate is not counted */
		for (size_t i = 0; i < N_COUNTS; i++)
			*counts[i].count = 0;
	victim_ready();
	victim_gate(argc > 2 ? argv[2] : NULL);
	for (uint64_t i = 1; !victim_stop && (!rounds || i <= rounds); i++)
		one_round(i);
	for (size_t i = 0; i < N_COUNTS; i++)
		victim_calls(counts[i].name, *counts[i].count);
	puts("called");
	while (argc > 2 && !victim_stop)
		victim_sleep_ns(2000000);
	return victim_done(ok && (!rounds || n_tail >= rounds));
}
