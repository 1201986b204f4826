/* SPDX-License-Identifier: MIT */
/*
 * asm-shapes [ROUNDS [GATE]]: calls each function of arch/ARCH/shapes.S in turn and checks what
 * it returns; one call of each a round. `calls NAME N` and, for what a hook broke, `wrong NAME`.
 */
#include <sys/syscall.h>
#include "victim.h"

long as_ret(void), as_three(void), as_four(long), as_tight_first(long), as_tight(long),
	as_tight_last(long), as_pre(long), as_pre_next(long), as_spin0(long), as_far0(long),
	as_into(long), as_other_into(long), as_other_from(long), as_jrcxz(long, long, long, long),
	as_loop(long, long, long, long), as_jcc(long), as_jmp(long), as_jmp8(long), as_call(void),
	as_retaddr(void), as_pop(long), as_rip_load(long), as_rip_cmp(void), as_rip_lea(void),
	as_rip_jmp(long), as_rip_call(long), as_endbr_short(long), as_endbr(long),
	as_call_flags(long), as_cas(int *), as_rep(char *, const char *, long, long),
	as_run_through(long), as_run_into(long), as_run_from(long), as_call_syscall(long),
	as_redzone(long, long), as_call_registers(void);

/* clang-format off: a table of one-liners */
static bool t_ret(long i)
{
	(void)i;
	as_ret();
	return true;
}
static bool t_three(long i)
{
	(void)i;
	return as_three() == 0;
}
static bool t_four(long i)
{
	return as_four(i) == i;
}
static bool t_tight_first(long i)
{
	return as_tight_first(i) == i + 1;
}
static bool t_tight(long i)
{
	return as_tight(i) == (long)(unsigned int)i;
}
static bool t_tight_last(long i)
{
	return as_tight_last(i) == i + 2;
}
static bool t_pre(long i)
{
	return as_pre(i) == (long)(unsigned int)i;
}
static bool t_pre_next(long i)
{
	return as_pre_next(i) == i + 3;
}
static bool t_spin0(long i)
{
	return as_spin0(1 + i % 5) == 7;
}
static bool t_far0(long i)
{
	return as_far0(1 + i % 5) == 1;
}
static bool t_into(long i)
{
	return as_into(1 + i % 5) == 9;
}
static bool t_other_into(long i)
{
	return as_other_into(i) == i + 4;
}
static bool t_other_from(long i)
{
	return as_other_from(i) == i + 104;
}
static bool t_run_through(long i)
{
	return as_run_through(i) == i + 5;
}
static bool t_run_into(long i)
{
	return as_run_into(i) == i + 4;
}
static bool t_run_from(long i)
{
	return as_run_from(i) == i + 104;
}
static bool t_jrcxz(long i)
{
	return as_jrcxz(0, 0, 0, i & 1) == (i & 1 ? 1 : 2);
}
static bool t_loop(long i)
{
	return as_loop(0, 0, 0, 1 + (i & 1)) == (i & 1 ? 1 : 3);
}
static bool t_jcc(long i)
{
	return as_jcc(i & 1) == (i & 1 ? 5 : 6);
}
static bool t_jmp(long i)
{
	return as_jmp(i) == i;
}
static bool t_jmp8(long i)
{
	return as_jmp8(i) == i + 8;
}
static bool t_call(long i)
{
	(void)i;
	return as_call() == 0;
}
static bool t_pop(long i)
{
	return as_pop(i) == i;
}
static bool t_rip_load(long i)
{
	return as_rip_load(i) == i + 1000;
}
static bool t_rip_cmp(long i)
{
	(void)i;
	return as_rip_cmp() == 1;
}
static bool t_rip_lea(long i)
{
	(void)i;
	return as_rip_lea() == (long)(uintptr_t)as_rip_lea;
}
static bool t_rip_jmp(long i)
{
	return as_rip_jmp(i) == i;
}
static bool t_rip_call(long i)
{
	return as_rip_call(i) == i + 1;
}
static bool t_endbr_short(long i)
{
	return as_endbr_short(i) == i;
}
static bool t_endbr(long i)
{
	return as_endbr(i) == i + 78;
}
static bool t_flags(long i)
{
	return as_call_flags(i & 3) == (i & 3);
}
static bool t_syscall(long i)
{
	(void)i;
	return as_call_syscall(SYS_getpid) == getpid();
}
static bool t_redzone(long i)
{
	return as_redzone(i, 5) == i + 5;
}
/* clang-format on */

static bool t_retaddr(long i)
{
	long at = as_retaddr(), here = (long)(uintptr_t)t_retaddr;

	(void)i;
	return at > here && at < here + 256;
}

static bool t_cas(long i)
{
	int word = (int)i;

	as_cas(&word);
	return word == (int)i + 1;
}

static bool t_rep(long i)
{
	char from[16] = "abcdefghijklmno", to[16] = { 0 };

	(void)i;
	return as_rep(to, from, 0, sizeof(from)) == (long)(uintptr_t)(to + sizeof(to)) &&
	       memcmp(from, to, sizeof(from)) == 0;
}

static bool t_nothing(long i)
{
	long which = as_call_registers();

	(void)i;
	if (which)
		fprintf(stderr, "asm-shapes: register %ld was not kept\n", which);
	return which == 0;
}

static struct {
	const char *name;
	bool (*test)(long i);
	uint64_t calls, more, wrong; /* more: calls made by its neighbours' tests */
} shapes[] = {
	{ .name = "as_ret", .test = t_ret },
	{ .name = "as_three", .test = t_three },
	{ .name = "as_tight_first", .test = t_tight_first },
	{ .name = "as_tight", .test = t_tight },
	{ .name = "as_tight_last", .test = t_tight_last },
	{ .name = "as_pre", .test = t_pre },
	{ .name = "as_pre_next", .test = t_pre_next },
	{ .name = "as_spin0", .test = t_spin0 },
	{ .name = "as_far0", .test = t_far0 },
	{ .name = "as_into", .test = t_into },
	{ .name = "as_other_into", .test = t_other_into },
	{ .name = "as_other_from", .test = t_other_from },
	{ .name = "as_run_through", .test = t_run_through },
	{ .name = "as_run_into", .test = t_run_into, .more = 1 }, /* as_run_through */
	{ .name = "as_run_from", .test = t_run_from },
	{ .name = "as_jrcxz", .test = t_jrcxz },
	{ .name = "as_loop", .test = t_loop },
	{ .name = "as_jcc", .test = t_jcc },
	{ .name = "as_jmp", .test = t_jmp },
	{ .name = "as_jmp8", .test = t_jmp8 },
	{ .name = "as_call", .test = t_call },
	{ .name = "as_retaddr", .test = t_retaddr, .more = 1 }, /* by as_call */
	{ .name = "as_pop", .test = t_pop },
	{ .name = "as_rip_load", .test = t_rip_load },
	{ .name = "as_rip_cmp", .test = t_rip_cmp },
	{ .name = "as_rip_lea", .test = t_rip_lea },
	{ .name = "as_rip_jmp", .test = t_rip_jmp },
	{ .name = "as_rip_call", .test = t_rip_call },
	{ .name = "as_four", .test = t_four, .more = 3 }, /* as_jmp, as_rip_jmp, as_rip_call */
	{ .name = "as_endbr_short", .test = t_endbr_short },
	{ .name = "as_endbr", .test = t_endbr },
	{ .name = "as_flags", .test = t_flags },
	{ .name = "as_cas", .test = t_cas },
	{ .name = "as_rep", .test = t_rep },
	{ .name = "as_syscall", .test = t_syscall },
	{ .name = "as_redzone", .test = t_redzone },
	{ .name = "as_nothing", .test = t_nothing },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 0;
	bool ok = true;

	victim_catch_term();
	victim_ready();
	victim_gate(argc > 2 ? argv[2] : NULL);
	for (long i = 0; !victim_stop && (!rounds || i < rounds); i++)
		for (size_t s = 0; s < SHAPES; s++) {
			shapes[s].calls += 1 + shapes[s].more;
			if (!shapes[s].test(i))
				shapes[s].wrong++;
		}
	for (size_t s = 0; s < SHAPES; s++) {
		victim_calls(shapes[s].name, shapes[s].calls);
		if (shapes[s].wrong)
			printf("wrong %s %llu\n", shapes[s].name,
			       (unsigned long long)shapes[s].wrong);
		ok = ok && shapes[s].wrong == 0;
	}
	puts("called");
	while (argc > 2 && !victim_stop)
		victim_sleep_ns(2000000);
	return victim_done(ok);
}
