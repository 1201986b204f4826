/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stdlib.h>
#include <time.h>
#include "inject/arch/arch.h"

#define NS 1000000000ull

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

uint64_t clock_ns(void)
{
	return read_ns(CLOCK_MONOTONIC_RAW);
}

uint64_t clock_realtime_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/*
 * Both clocks at one instant: the tightest of several tries, so that a preemption does not count.
 */
static void read_pair(uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 50; i++) {
		uint64_t a = arch->clock_read();
		uint64_t t = clock_ns();
		uint64_t b = arch->clock_read();

		if (b - a >= best)
			continue;
		best = b - a;
		*ticks = a + (b - a) / 2;
		*ns = t;
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The step by which readings advance: low among the differences, but not a single odd reading. */
static double find_quantum(void)
{
	enum { READINGS = 2000, low = READINGS / 10 };
	uint64_t step[READINGS], last = arch->clock_read();

	for (int i = 0; i < READINGS;) {
		uint64_t now = arch->clock_read();

		if (now != last)
			step[i++] = now - last;
		last = now;
	}
	qsort(step, READINGS, sizeof(*step), by_size);
	return (double)step[low];
}

void clock_refine(struct clock *clk)
{
	uint64_t ticks, ns;

	read_pair(&ticks, &ns);
	if (ns > clk->ns0)
		clk->ticks_per_ns = (double)(ticks - clk->ticks0) / (double)(ns - clk->ns0);
}

void clock_open(struct clock *clk)
{
	read_pair(&clk->ticks0, &clk->ns0);
	clk->quantum_ticks = find_quantum();
	while (clock_ns() - clk->ns0 < 20000000)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	clock_refine(clk);
}

uint64_t clock_ticks(const struct clock *clk, double ns)
{
	return ns <= 0 ? 0 : (uint64_t)(ns * clk->ticks_per_ns + 0.5);
}

double clock_to_ns(const struct clock *clk, double ticks)
{
	return ticks / clk->ticks_per_ns;
}
