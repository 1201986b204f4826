/* SPDX-License-Identifier: MIT */
/* A library whose lib_chosen() is chosen by a resolver, and called by its own constructor. */
#include <stdint.h>

typedef uint64_t chosen_t(uint64_t x);

static __attribute__((noinline, noclone, used)) uint64_t chosen_one(uint64_t x)
{
	__asm__ volatile("" : "+r"(x) : : "memory");
	return x + 33;
}

static __attribute__((noinline, noclone, used)) uint64_t chosen_other(uint64_t x)
{
	__asm__ volatile("" : "+r"(x) : : "memory");
	return x + 44;
}

/* Empty before relocation: asked then, the resolver would answer with the other one. */
static chosen_t *volatile choice = chosen_one;

static chosen_t *choose(void)
{
	return choice == chosen_one ? chosen_one : chosen_other;
}

__attribute__((ifunc("choose"))) chosen_t lib_chosen;

static volatile uint64_t sink;

__attribute__((constructor)) static void construct(void)
{
	sink = lib_chosen(1);
}
