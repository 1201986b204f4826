/* SPDX-License-Identifier: MIT */
#include "budget.h"

#include <stddef.h>
#include <time.h>

static bool halted;

void budget_halt(void)
{
	__atomic_store_n(&halted, true, __ATOMIC_RELEASE);
}

bool budget_halted(void)
{
	return __atomic_load_n(&halted, __ATOMIC_ACQUIRE);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

void budget_begin(struct budget_run *run, struct budget *b)
{
	*run = (struct budget_run){ .b = b, .began_ns = b ? now_ns() : 0 };
}

bool budget_over_now(struct budget_run *run)
{
	struct budget *b = run->b;

	if (b && !b->over &&
	    (budget_halted() || b->spent_ns + (now_ns() - run->began_ns) > BUDGET_NS))
		b->over = true;
	return b && b->over;
}

bool budget_over(struct budget_run *run)
{
	if (!run->b || run->b->over || run->steps++ % 64)
		return run->b && run->b->over;
	return budget_over_now(run);
}

void budget_end(struct budget_run *run)
{
	if (run->b)
		run->b->spent_ns += now_ns() - run->began_ns;
}
