/* SPDX-License-Identifier: MIT */
/*
 * ifunc CALLS [GATE [LIB]]: functions that are chosen by a resolver. own_fn() is called from a
 * constructor already; wcsnlen() and the library's lib_chosen() are found by dlsym() alone, so
 * that no slot of anyone holds their address. (Linked statically: own_fn() only.)
 *
 * asks_kernel(), asks_forever() and asks_nobody() are never called: their resolvers cannot be
 * asked again without doing harm.
 */
#include <dlfcn.h>
#include <sys/syscall.h>
#include <wchar.h>
#include "victim.h"

typedef uint64_t own_fn_t(uint64_t x);

static uint64_t own_calls;

static VICTIM_HOOKED uint64_t own_first(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + 11;
}

static VICTIM_HOOKED uint64_t own_second(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + 22;
}

/* Reached through a relocated pointer: the resolver is right only once it has its value. */
static own_fn_t *volatile own_choice = own_first;

static own_fn_t *choose_own(void)
{
	return own_choice ? own_choice : own_second;
}

__attribute__((ifunc("choose_own"))) own_fn_t own_fn;

static void call_own(uint64_t x, bool *ok)
{
	*ok &= own_fn(x) == x + 11;
	own_calls++;
}

static bool constructed = true;

__attribute__((constructor)) static void construct(void)
{
	call_own(1, &constructed);
}

#ifndef VICTIM_STATIC
/* Volatile, or a compiler sees that it never ends. */
static volatile int forever = 1;

static own_fn_t *choose_kernel(void)
{
	return syscall(SYS_getpid) > 0 ? own_first : own_second;
}

static own_fn_t *choose_forever(void)
{
	while (forever)
		;
	return own_first;
}

static own_fn_t *choose_nobody(void)
{
	return (own_fn_t *)(uintptr_t)8;
}

__attribute__((ifunc("choose_kernel"), used)) own_fn_t asks_kernel;
__attribute__((ifunc("choose_forever"), used)) own_fn_t asks_forever;
__attribute__((ifunc("choose_nobody"), used)) own_fn_t asks_nobody;

static bool call_found(uint64_t calls, const char *lib)
{
	size_t (*length)(const wchar_t *, size_t) = dlsym(RTLD_DEFAULT, "wcsnlen");
	own_fn_t *chosen = lib ? dlsym(dlopen(lib, RTLD_NOW), "lib_chosen") : NULL;
	bool ok = length && (!lib || chosen);

	for (uint64_t i = 0; ok && i < calls; i++)
		ok = length(L"four", 9) == 4 && (!chosen || chosen(i) == i + 33);
	victim_calls("wcsnlen", calls);
	victim_calls("lib_chosen", chosen ? calls + 1 : 0); /* and once in its constructor */
	return ok;
}
#else
static bool call_found(uint64_t calls, const char *lib)
{
	(void)calls;
	(void)lib;
	return true;
}
#endif

int main(int argc, char **argv)
{
	uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	bool ok = true;

	victim_catch_term();
	victim_ready();
	victim_gate(argc > 2 && *argv[2] ? argv[2] : NULL);
	for (uint64_t i = 0; i < calls; i++)
		call_own(i, &ok);
	victim_calls("own_fn", own_calls);
	ok &= call_found(calls, argc > 3 ? argv[3] : NULL);
	puts("called");
	while (argc > 2 && *argv[2] && !victim_stop)
		victim_sleep_ns(5000000);
	return victim_done(ok && constructed);
}
