/* SPDX-License-Identifier: MIT */
/*
 * spans [ROUNDS]: functions that take a known time, for time=yes. Each round calls
 *
 *	span_inner	works for 100 us
 *	span_outer	works for 400 us, and calls span_inner twice
 *	span_left	is left by longjmp(), in each tenth round
 *
 * and at the end span_ends, which never returns. Prints `calls NAME N` (of span_left: those that
 * were left) and `took NAME NS`, the sum that the victim itself measured around the calls. Without
 * ROUNDS it works until SIGTERM.
 */
#include <setjmp.h>
#include "victim.h"

enum { INNER_NS = 100000, OUTER_NS = 400000 };

void span_inner(void);
void span_outer(void);
void span_left(jmp_buf env);
void span_ends(bool ok) __attribute__((noreturn));

static uint64_t inner, outer, left, inner_ns, outer_ns;

static void work(uint64_t ns)
{
	uint64_t end = victim_now_ns() + ns;

	while (victim_now_ns() < end)
		;
}

VICTIM_HOOKED void span_inner(void)
{
	work(INNER_NS);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}

static void call_inner(void)
{
	uint64_t from = victim_now_ns();

	span_inner();
	inner_ns += victim_now_ns() - from;
	inner++;
}

VICTIM_HOOKED void span_outer(void)
{
	work(OUTER_NS);
	call_inner();
	call_inner();
	__asm__ volatile("" : : : "memory");
}

VICTIM_HOOKED void span_left(jmp_buf env)
{
	if (left++ < UINT64_MAX)
		longjmp(env, 1);
}

VICTIM_HOOKED void span_ends(bool ok)
{
	exit(victim_done(ok));
}

static void round_of(uint64_t i)
{
	uint64_t from = victim_now_ns();
	jmp_buf env;

	span_outer();
	outer_ns += victim_now_ns() - from;
	outer++;
	call_inner();
	if (i % 10 == 0 && !setjmp(env))
		span_left(env);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : UINT64_MAX;

	victim_catch_term();
	victim_ready();
	for (uint64_t i = 0; i < rounds && !victim_stop; i++)
		round_of(i);
	victim_calls("span_inner", inner);
	victim_calls("span_outer", outer);
	victim_calls("span_left", left);
	printf("took span_inner %llu\ntook span_outer %llu\n", (unsigned long long)inner_ns,
	       (unsigned long long)outer_ns);
	span_ends(inner == 3 * outer);
}
