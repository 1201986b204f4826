/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <time.h>
#include "trace.h"
#include "inject/arch/arch.h"
#include "src/base/must.h"

/* A line bends towards the true time so that it is reached after this time ... */
#define REACH_NS 1e9
/* ... and by no more than this part. */
#define BEND_MOST 1e-3

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Both clocks at one instant, as nearly as three tries give it. */
static void read_pair(uint64_t *ticks, uint64_t *ns)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
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
}

void trace_clock_follow(struct trace_clock *clk)
{
	const struct trace_line *first = &clk->line[0];
	uint64_t ticks = 0, ns = 0, said;
	double rate, bend;

	read_pair(&ticks, &ns);
	if (ticks <= clk->line[clk->n - 1].ticks)
		return;
	said = trace_clock_ns(clk, ticks);
	rate = (double)(ns - first->ns) / (double)(ticks - first->ticks);
	bend = ((double)ns - (double)said) / REACH_NS;
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
