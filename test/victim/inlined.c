/* SPDX-License-Identifier: MIT */
/*
 * inlined N: calls inl_fn(), which the compiler puts into each of its callers, N times from each of
 * three; inl_loop(), a copy of which begins with its own loop; inl_both(), which is a function as
 * well. Prints how often each was called.
 */
#include "victim.h"

void first(uint64_t n);
void second(uint64_t n);
void third(uint64_t n);
void looping(uint64_t n);
uint64_t direct(uint64_t n);

static uint64_t sink;

static inline __attribute__((always_inline)) void inl_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	sink += x * 3 + 1;
	VICTIM_OPAQUE(sink);
}

static inline __attribute__((always_inline)) void inl_loop(uint64_t x)
{
	__asm__ volatile("1:	sub $1, %0\n\tjne 1b" : "+r"(x) : : "cc");
}

static inline uint64_t inl_both(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x * 5 + 7;
}

VICTIM_HOOKED void first(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		inl_fn(i);
}

VICTIM_HOOKED void second(uint64_t n)
{
	for (uint64_t i = 0; i < n; i += 2) {
		inl_fn(i);
		sink ^= i;
		inl_fn(i + 1);
	}
}

VICTIM_HOOKED void third(uint64_t n)
{
	while (n--) {
		if (n % 3)
			sink += n;
		inl_fn(n);
	}
}

VICTIM_HOOKED void looping(uint64_t n)
{
	VICTIM_OPAQUE(n);
	sink++;
	inl_loop(n);
}

VICTIM_HOOKED uint64_t direct(uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += inl_both(i);
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, sum = 0, want = 0;
	uint64_t (*volatile by_address)(uint64_t) = inl_both;

	victim_catch_term();
	victim_ready();
	first(n);
	second(n);
	third(n);
	looping(n + 1);
	sum = direct(n);
	for (uint64_t i = 0; i < n; i++) {
		sum += by_address(i);
		want += 2 * (i * 5 + 7);
	}
	victim_calls("inl_fn", 3 * n);
	victim_calls("inl_both", 2 * n);
	return victim_done(sum == want);
}
