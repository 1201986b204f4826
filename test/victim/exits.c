/* SPDX-License-Identifier: MIT */
/*
 * exits [ROUNDS [GATE]]: functions that leave in every way that a compiler makes, for hooks at
 * their exits. `calls NAME N`: how often NAME left by a ret or a tail call. The results are
 * checked, and for exit_last() when it did its last work: `late N`, the ns from there until its
 * caller goes on, and `early N`, the ns from the call until there, both the smallest seen.
 */
#include <setjmp.h>
#include "victim.h"

uint64_t exit_early(uint64_t n);
uint64_t exit_tail(uint64_t n);
uint64_t exit_tailed(uint64_t n);
uint64_t exit_pointer(uint64_t n, uint64_t (*f)(uint64_t));
struct ops;
uint64_t exit_table(const struct ops *ops, uint64_t n);
uint64_t exit_switch(uint64_t n, uint64_t x);
uint64_t exit_cold(uint64_t n);
uint64_t exit_recurse(uint64_t n);
uint64_t exit_jump(jmp_buf env, uint64_t n);
void exit_never(void);
void exit_last(void);
unsigned __int128 exit_pair(uint64_t n);
double exit_double(double x);
uint64_t asm_nops(uint64_t n), asm_tight(uint64_t n), asm_redzone(uint64_t n),
	asm_carry(uint64_t n), asm_condition(uint64_t n), asm_shared(uint64_t n),
	asm_into(uint64_t n);

struct ops {
	uint64_t (*f)(uint64_t n);
};

static bool ok = true;
static uint64_t sink, jumped;
static volatile uint64_t last_at;

static void check(bool good, const char *what)
{
	if (!good && ok)
		fprintf(stderr, "exits: %s went wrong\n", what);
	ok = ok && good;
}

static VICTIM_HOOKED uint64_t work(uint64_t n)
{
	VICTIM_OPAQUE(n);
	sink += n;
	return n;
}

static __attribute__((cold, noinline)) void rare(uint64_t n)
{
	VICTIM_OPAQUE(n);
	sink ^= n;
}

VICTIM_HOOKED uint64_t exit_early(uint64_t n)
{
	uint64_t a;

	VICTIM_OPAQUE(n);
	if (n % 5 == 0)
		return 5;
	a = work(n);
	if (n % 5 == 1)
		return a + 1;
	a += work(n + 1);
	if (n % 5 == 2)
		return a * 2;
	return a + work(a) + n;
}

VICTIM_HOOKED uint64_t exit_tailed(uint64_t n)
{
	VICTIM_OPAQUE(n);
	return n * 2;
}

VICTIM_HOOKED uint64_t exit_tail(uint64_t n)
{
	VICTIM_OPAQUE(n);
	if (n & 1)
		return exit_tailed(n + 1);
	work(n);
	return n;
}

VICTIM_HOOKED uint64_t exit_pointer(uint64_t n, uint64_t (*f)(uint64_t))
{
	work(n);
	VICTIM_OPAQUE(n);
	return f(n + 3);
}

VICTIM_HOOKED uint64_t exit_table(const struct ops *ops, uint64_t n)
{
	VICTIM_OPAQUE(n);
	return ops->f(n);
}

VICTIM_HOOKED uint64_t exit_switch(uint64_t n, uint64_t x)
{
	VICTIM_OPAQUE(x);
	switch (n % 9) {
	case 0:
		return x + 1;
	case 1:
		return work(x) * 3;
	case 2:
		work(x);
		return 2;
	case 3:
		return x ^ 0x55;
	case 4:
		return exit_tailed(x);
	case 5:
		return x * x;
	case 6:
		work(x + 1);
		work(x + 2);
		return x - 1;
	case 7:
		return x / 3;
	default:
		return 0;
	}
}

VICTIM_HOOKED uint64_t exit_cold(uint64_t n)
{
	uint64_t a = work(n);

	if (n % 4 == 3) {
		rare(a);
		rare(a + 1);
		return a * 7;
	}
	return a + 4;
}

VICTIM_HOOKED uint64_t exit_recurse(uint64_t n)
{
	uint64_t below;

	VICTIM_OPAQUE(n);
	if (!n)
		return 0;
	below = exit_recurse(n - 1);
	VICTIM_OPAQUE(below);
	return below + n;
}

VICTIM_HOOKED uint64_t exit_jump(jmp_buf env, uint64_t n)
{
	work(n);
	if (n % 3 == 0)
		longjmp(env, 1);
	return n + 9;
}

VICTIM_HOOKED void exit_never(void)
{
	for (;;)
		work(1);
}

VICTIM_HOOKED void exit_last(void)
{
	work(8);
	last_at = victim_now_ns();
}

VICTIM_HOOKED unsigned __int128 exit_pair(uint64_t n)
{
	return (unsigned __int128)work(n) << 64 | (n + 1);
}

VICTIM_HOOKED double exit_double(double x)
{
	work(4);
	return x * 1.5;
}

#define FUNCTION(name, code)                                                                       \
	".balign 16\n.globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name \
	", . - " name "\n"

/*
 * nops: a ret in mid-function, behind it the no-ops that align a loop. tight: a ret that is the
 * destination of a branch, and code right behind it. redzone: the last load is from below rsp.
 * carry: the result is in the carry flag. condition: leaves by a conditional jump to another
 * function. into: jumps into the middle of shared.
 */
__asm__(".text\n" FUNCTION("asm_nops", "test $1, %dil\n"
				       "lea 1(%rdi), %rax\n"
				       "jne 1f\n"
				       "ret\n"
				       ".p2align 4\n"
				       "1: lea 2(%rdi), %rax\n"
				       "ret") FUNCTION("asm_tight", "mov %rdi, %rax\n"
								    "test $1, %dil\n"
								    "jne 1f\n"
								    "add $5, %rax\n"
								    "1: ret\n"
								    "jmp 1b")
		FUNCTION("asm_redzone", "mov %rdi, -8(%rsp)\n"
					"xor %eax, %eax\n"
					"mov %rdi, -120(%rsp)\n"
					"mov -120(%rsp), %rcx\n"
					"mov -8(%rsp), %rax\n"
					"ret") FUNCTION("asm_carry_", "xor %eax, %eax\n"
								      "bt $0, %rdi\n"
								      "ret")
			FUNCTION("asm_carry", "call asm_carry_\n"
					      "mov $0, %eax\n"
					      "setc %al\n"
					      "ret") FUNCTION("asm_condition", "mov %rdi, %rax\n"
									       "test $1, %dil\n"
									       "jne asm_nops\n"
									       "nop\n"
									       "ret")
				FUNCTION("asm_shared", "mov %rdi, %rax\n"
						       "shared_middle: add $6, %rax\n"
						       "ret")
					FUNCTION("asm_into", "mov $1, %eax\n"
							     "jmp shared_middle"));

static void asm_round(uint64_t i)
{
	check(asm_nops(i) == i + 1 + (i & 1), "asm_nops");
	check(asm_tight(i) == i + (i & 1 ? 0 : 5), "asm_tight");
	check(asm_redzone(i) == i, "asm_redzone");
	check(asm_carry(i) == (i & 1), "asm_carry");
	check(asm_condition(i) == (i & 1 ? i + 2 : i), "asm_condition");
	check(asm_shared(i) == i + 6, "asm_shared");
	check(asm_into(i) == 7, "asm_into");
}

static uint64_t want_switch(uint64_t n, uint64_t x)
{
	const uint64_t result[9] = { x + 1, x * 3, 2, x ^ 0x55, x * 2, x * x, x - 1, x / 3, 0 };

	return result[n % 9];
}

static uint64_t want_early(uint64_t n)
{
	const uint64_t a = 2 * n + 1;

	return n % 5 == 0 ? 5 : n % 5 == 1 ? n + 1 : n % 5 == 2 ? a * 2 : a + a + n;
}

static void jump_round(uint64_t i)
{
	jmp_buf env;

	if (setjmp(env) == 0)
		check(exit_jump(env, i) == i + 9, "exit_jump");
	else
		jumped++;
}

static void round_of(uint64_t i)
{
	static const struct ops ops = { exit_tailed };

	check(exit_early(i) == want_early(i), "exit_early");
	check(exit_tail(i) == (i & 1 ? (i + 1) * 2 : i), "exit_tail");
	check(exit_pointer(i, exit_tailed) == (i + 3) * 2, "exit_pointer");
	check(exit_table(&ops, i) == i * 2, "exit_table");
	check(exit_switch(i, i + 11) == want_switch(i, i + 11), "exit_switch");
	check(exit_cold(i) == (i % 4 == 3 ? i * 7 : i + 4), "exit_cold");
	check(exit_recurse(3) == 6, "exit_recurse");
	check(exit_pair(i) == ((unsigned __int128)i << 64 | (i + 1)), "exit_pair");
	check(exit_double((double)i) == (double)i * 1.5, "exit_double");
	jump_round(i);
	asm_round(i);
}

static void last_round(uint64_t *early, uint64_t *late)
{
	uint64_t from = victim_now_ns(), to;

	exit_last();
	to = victim_now_ns();
	if (last_at - from < *early)
		*early = last_at - from;
	if (to - last_at < *late)
		*late = to - last_at;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 100, early = UINT64_MAX, late = early;
	uint64_t tailed = 0;
	volatile uint64_t i;

	victim_catch_term();
	victim_ready();
	victim_gate(argc > 2 ? argv[2] : NULL);
	for (i = 0; i < n && !victim_stop; i++) {
		round_of(i);
		last_round(&early, &late);
		tailed += 2 + (i & 1) + (i % 9 == 4);
	}
	victim_calls("exit_early", i);
	victim_calls("exit_tail", i);
	victim_calls("exit_tailed", tailed);
	victim_calls("exit_pointer", i);
	victim_calls("exit_table", i);
	victim_calls("exit_switch", i);
	victim_calls("exit_cold", i);
	victim_calls("exit_recurse", i * 4);
	victim_calls("exit_jump", i - jumped);
	victim_calls("exit_pair", i);
	victim_calls("exit_double", i);
	victim_calls("exit_last", i);
	victim_calls("asm_nops", i + i / 2);
	victim_calls("asm_tight", i);
	victim_calls("asm_redzone", i);
	victim_calls("asm_carry_", i);
	victim_calls("asm_shared", i * 2);
	victim_calls("asm_condition", i);
	printf("early %llu\nlate %llu\n", (unsigned long long)early, (unsigned long long)late);
	return victim_done(ok);
}
