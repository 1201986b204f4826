/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <time.h>
#include "trace.h"
#include "inject/arch/arch.h"
#include "src/base/must.h"

#define MS 1000000ull

/* A line bends towards the true time, which it reaches by the next line, by at most this part. */
#define BEND_MOST 1e-3

enum { TRIES = 7, FIRST_MS = 10, MOST_MS = 1000 };

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Both clocks at one instant, as nearly as some tries give it. */
static void read_pair(uint64_t *ticks, uint64_t *ns)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = arch->clock_read(), now = monotonic();
		uint64_t took = arch->clock_read() - before;

		if (took >= least)
			continue;
		least = took;
		*ticks = before + took / 2;
		*ns = now;
	}
}

static void add_line(struct trace_clock *clk, uint64_t ticks, uint64_t ns, double ns_per_tick)
{
	if (!(clk->n & (clk->n - 1)))
		clk->line = must_realloc(clk->line, (clk->n ? clk->n * 2 : 1) * sizeof(*clk->line));
	clk->line[clk->n++] = (struct trace_line){ ticks, ns, ns_per_tick };
}

void trace_clock_open(struct trace_clock *clk, double ticks_per_ns)
{
	uint64_t ticks = 0, ns = 0;

	*clk = (struct trace_clock){ 0 };
	read_pair(&ticks, &ns);
	add_line(clk, ticks, ns, 1 / ticks_per_ns);
	clk->next_ns = ns + FIRST_MS * MS;
}

void trace_clock_follow(struct trace_clock *clk)
{
	const struct trace_line *first = &clk->line[0];
	uint64_t ticks = 0, ns = 0, said, wait;
	double rate, bend;

	read_pair(&ticks, &ns);
	if (ns < clk->next_ns || ticks <= clk->line[clk->n - 1].ticks)
		return;
	/* The rate becomes better with the time since the first line: often at first. */
	wait = ns - first->ns;
	if (wait > MOST_MS * MS)
		wait = MOST_MS * MS;
	clk->next_ns = ns + wait;
	said = trace_clock_ns(clk, ticks);
	rate = (double)(ns - first->ns) / (double)(ticks - first->ticks);
	bend = ((double)ns - (double)said) / (double)wait;
	if (bend > BEND_MOST)
		bend = BEND_MOST;
	if (bend < -BEND_MOST)
		bend = -BEND_MOST;
	add_line(clk, ticks, said, rate * (1 + bend));
}

uint64_t trace_clock_ns(const struct trace_clock *clk, uint64_t ticks)
{
	const struct trace_line *line = &clk->line[clk->n - 1];
	double ns;

	while (line > clk->line && line->ticks > ticks)
		line--;
	ns = (double)(int64_t)(ticks - line->ticks) * line->ns_per_tick;
	return ns < 0 && -ns > (double)line->ns ? 0 : line->ns + (uint64_t)(int64_t)ns;
}

void trace_clock_free(struct trace_clock *clk)
{
	free(clk->line);
	*clk = (struct trace_clock){ 0 };
}
