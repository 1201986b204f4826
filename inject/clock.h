/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOCK_H
#define SB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The clock that delays are measured by (the TSC), against CLOCK_MONOTONIC_RAW. clock_open()
 * takes a first reading over about 20 ms; each clock_refine() extends the base line, so that
 * the rate gets better the longer a session runs. One clock a process; not thread-safe.
 */
struct clock {
	uint64_t ticks0, ns0; /* first pair */
	double ticks_per_ns;
	double quantum_ticks; /* smallest step seen between two readings */
};

void clock_open(struct clock *clk);
void clock_refine(struct clock *clk);
uint64_t clock_ns(void); /* CLOCK_MONOTONIC_RAW */
uint64_t clock_realtime_ns(void);
uint64_t clock_ticks(const struct clock *clk, double ns);
double clock_to_ns(const struct clock *clk, double ticks);

/*
 * What a hook costs beyond the time its stub measures, from a function in this process that is
 * hooked as a target's would be: interleaved rounds with and without, the low ones, until two
 * batches of them agree. Takes 10 to 60 ms; the target is not involved.
 */
struct hook_cost {
	double count_ns;     /* a counted hit without delay */
	double off_ns;	     /* a hit while switched off */
	double delay_ticks;  /* of a delayed hit: all that lies outside of its measurement */
	double spread_ticks; /* by how much two measurements of it differ */
	double floor_ns;     /* the smallest delay that can be given */
};

/* each: of a hook that counts in its function's own counter, too. 0, or negative where no
 * executable memory can be had (then the costs are zero). keep: what measured it, for
 * hook_bench_step(); NULL: it goes at once. */
struct hook_bench;
int clock_hook_cost(const struct clock *clk, bool each, struct hook_cost *out,
		    struct hook_bench **keep);

/*
 * Measures a delayed hit's cost again, 0.1 to 0.2 ms of it a call: the core may have been slow at
 * the start, or become so. True: two batches of 20 calls each agree that it is another one than
 * cost->delay_ticks, which is changed; spread_ticks then covers both.
 */
bool hook_bench_step(struct hook_bench *b, struct hook_cost *cost);
void hook_bench_close(struct hook_bench *b); /* NULL is harmless */

#endif
