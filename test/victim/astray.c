/* SPDX-License-Identifier: MIT */
/*
 * astray: a program that lies to a tool that asks where its functions are. Its resolvers answer
 * what they like once it runs: far_fn() would be in the middle of a function of the C library, and
 * near_fn() in the middle of one of its own. It calls neither.
 */
#include <dlfcn.h>
#include "victim.h"

typedef uint64_t astray_fn_t(uint64_t x);

static VICTIM_HOOKED uint64_t honest(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + 11;
}

/* Nothing that the dynamic linker relocates: what it has done must be seen to be done. */
static astray_fn_t *volatile far_choice, *volatile near_choice, *volatile foreign_choice;

static astray_fn_t *choose_far(void)
{
	return far_choice ? far_choice : honest;
}

static astray_fn_t *choose_near(void)
{
	return near_choice ? near_choice : honest;
}

static astray_fn_t *choose_foreign(void)
{
	return foreign_choice ? foreign_choice : honest;
}

__attribute__((ifunc("choose_far"), used)) astray_fn_t far_fn;
__attribute__((ifunc("choose_near"), used)) astray_fn_t near_fn;
__attribute__((ifunc("choose_foreign"), used)) astray_fn_t foreign_fn;

int main(void)
{
	uintptr_t library = (uintptr_t)dlsym(RTLD_DEFAULT, "getppid");

	victim_catch_term();
	far_choice = (astray_fn_t *)(library + 5); /* in the middle of its instruction */
	foreign_choice = (astray_fn_t *)library;
	near_choice = (astray_fn_t *)((uintptr_t)honest + 1);
	victim_ready();
	while (!victim_stop)
		victim_sleep_ns(5000000);
	return victim_done(true);
}
