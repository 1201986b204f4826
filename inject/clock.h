/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOCK_H
#define SB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The clock that measures delays (the TSC), calibrated against CLOCK_MONOTONIC_RAW. clock_open()
 * takes a first reading over about 20 ms. Each clock_refine() extends the base line, so the rate
 * becomes more precise the longer a session runs. One clock per process; not thread-safe.
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
uint64_t clock_thread_ns(void); /* CPU time of the calling thread */
uint64_t clock_ticks(const struct clock *clk, double ns);
double clock_to_ns(const struct clock *clk, double ticks);

/*
 * The cost of a hook beyond the time that its stub measures. A function in this process is hooked
 * as a target's function would be; rounds with and without the hook alternate, and the low ones are
 * used, until two batches agree. Takes 10 to 60 ms; the target is not involved.
 */
struct hook_cost {
	double count_ns;     /* a counted hit without delay */
	double off_ns;	     /* a hit while switched off */
	double delay_ticks;  /* of a delayed hit: all that lies outside its own measurement */
	double spread_ticks; /* by how much two measurements of it differ */
	double floor_ns;     /* the smallest delay that can be given */
	double nth_ns;	     /* a counted hit that is none of the Nth ones that are delayed */
	/* Of a timed call, ticks: what its own time contains of the measurement, and its caller's.
	 */
	double span_within, span_cost;
};

/* Of a timed call, ticks: what its values add to these. */
struct value_cost {
	double within, cost;
};

/*
 * each: of a hook that also counts in its function's own counter. 0, or negative where no
 * executable memory is available (then all costs are zero). keep: receives the bench, for
 * hook_bench_step(); NULL: the bench is closed at once.
 */
struct hook_bench;
int clock_hook_cost(const struct clock *clk, bool each, struct hook_cost *out,
		    struct hook_bench **keep);

/*
 * Fills span_within and span_cost, in the same way; record: of calls that are recorded, too. 0, or
 * negative where they remain 0.
 */
int clock_span_cost(bool each, bool record, struct hook_cost *out);
/* ... and, once these are known, what the values of a call add. */
int clock_value_cost(bool each, bool record, const struct hook_cost *spans, struct value_cost *out);

/*
 * Measures the cost of a delayed hit again, 0.1 to 0.2 ms of it per call: the core may have been
 * slow at the start, or may have become slow. True: two batches of 20 calls each agree on a value
 * other than cost->delay_ticks. That value is stored there, and spread_ticks then covers both.
 */
bool hook_bench_step(struct hook_bench *b, struct hook_cost *cost);
void hook_bench_close(struct hook_bench *b); /* NULL is harmless */

#endif
