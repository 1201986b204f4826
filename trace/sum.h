/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_SUM_H
#define SB_TRACE_SUM_H

#include "allocated.h"
#include "copies.h"
#include "devices.h"
#include "filter.h"
#include "hist.h"
#include "idmap.h"
#include "kernels.h"
#include "launch.h"
#include "lockorder.h"
#include "read.h"
#include "returns.h"
#include "stacks.h"

/*
 * What a trace sums up to. One pass over the file; memory is bounded by functions, threads and open
 * calls, not by spans.
 *
 *	struct sum *sum = sum_new(&options);	options are copied, what they point to is borrowed
 *	sum_read(sum, fd, name, &err);		once
 *	... its fields ...
 *	sum_free(sum);
 *
 * Own time is the duration without the calls (and delays) made in it, as far as they are in the
 * trace. Filters of functions and times choose what is counted, not what is nested: the own time of
 * a call does not change with them. A thread that is filtered out is not looked at.
 */
enum { SUM_LANES = 8, SUM_BINS = 1024, SUM_APIS = 2, SUM_WAITS = 10 };

/* What a function is for. Each API has its own launches and waits: one may call another. */
struct sum_role {
	enum launch_role role;
	unsigned int api; /* less than SUM_APIS */
	bool known;	  /* it is a function of the API, with a role or without */
};

struct sum_options {
	struct trace_filter filter;
	size_t slowest; /* how many */
	size_t gaps;	/* how many */
	uint64_t gap_min_ns;
	bool timeline, stacks;
	bool histogram;							/* it is to be shown */
	struct sum_role (*role)(const struct trace_function *function); /* NULL: none has one */
	enum lock_op (*lock)(const struct trace_function *function);	/* NULL: none is one */
	const char *(*result_name)(unsigned int api, int64_t code);	/* NULL, or may give it */
};

struct sum_times {
	uint64_t n, total_ns, own_ns, min_ns, max_ns;
	struct hist hist;
};

struct sum_function {
	uint32_t id;
	bool shown, off_cpu; /* off_cpu: its spans are times without a processor */
	enum trace_code code;
	struct sum_role role;
	enum lock_op lock;
	char *name, *module;
	struct sum_times *of[2]; /* by kind; NULL: no span */
	/* Of a Python function: launches in its calls, and those of no other one in between. */
	uint64_t launches_within, launches_own;
};

struct sum_process {
	int32_t pid;
	char *name;
	uint32_t threads;			 /* with spans */
	uint64_t spans, in_calls_ns, off_cpu_ns; /* as of its threads, added up */
};

struct nest;
struct sum_thread {
	uint32_t id;
	int32_t pid, tid;
	char *name;
	bool shown;
	uint64_t spans;
	uint64_t in_calls_ns; /* on a processor or not, from the begin to the end of calls that are
				 not in another one; off_cpu_ns is no call */
	uint64_t off_cpu_ns;  /* by the spans of an offcpu target */
	uint64_t first_ns, last_ns;
	uint64_t *bin;			 /* of the timeline: ns in calls */
	struct launch *launch[SUM_APIS]; /* of those counted; NULL: there are none */
	/* inner */
	struct nest *lane, *cover;
	unsigned int n_lanes;
	size_t orphans;
	uint64_t orphan_last;
};

struct sum_slow {
	struct trace_span span;
	uint64_t own_ns;
	uint32_t caller; /* function; 0: none is known */
	enum trace_kind caller_kind;
	unsigned int lane;
	bool orphan;
	struct trace_value value[VALUE_MAX]; /* span.n_values of them; span.value is not kept */
	struct trace_stack *stack;	     /* NULL: unknown; span.stack is not kept */
};

struct sum_gap {
	uint32_t thread;
	uint64_t start_ns, dur_ns; /* CLOCK_MONOTONIC */
};

struct sum {
	struct sum_options options;
	struct trace_reading reading;
	char *version, *command;
	uint64_t begin_ns, begin_unix_ns;
	struct trace_end end; /* if reading.ended */
	struct sum_process *process;
	struct sum_thread *thread; /* by id - 1 */
	struct sum_function *function;
	size_t n_processes, n_threads, n_functions;
	uint64_t spans;		    /* counted */
	uint64_t filtered;	    /* not counted: the filter */
	uint64_t first_ns, last_ns; /* of what was counted; CLOCK_MONOTONIC */
	uint64_t crossing, guessed; /* calls whose own time is not exact (nest.h) */
	struct sum_slow *slow;	    /* the slowest first */
	size_t n_slow;
	struct sum_wait {
		uint32_t thread, function;
		uint64_t start_ns, dur_ns;
	} wait[SUM_WAITS]; /* of LAUNCH_WAIT, the longest first */
	size_t n_waits;
	/* A launch that is made in another one is no second one: all; of Python functions; of none.
	 */
	struct sum_caused {
		uint64_t launches, python, none;
	} caused;
	struct kernels kernels;
	struct allocated allocated[SUM_APIS];
	struct copies copies[SUM_APIS];
	struct devices devices;	     /* finished */
	struct lockorder *lockorder; /* of all threads and times; NULL: no function is of a lock */
	struct returns returned;     /* of functions with a known role */
	struct sum_gap *gap;	     /* the longest first */
	size_t n_gaps;
	uint64_t gaps_closed_ns; /* shorter gaps than that may be missing */
	uint64_t bin_ns;
	int64_t bins_from_ns; /* of the first bin; CLOCK_MONOTONIC */
	size_t n_binned;      /* threads with bins */
	struct stacks stacks;
	uint32_t stack_list;
	bool off_cpu; /* the trace has such spans */
	struct hist_pool pool;
	size_t roots;	     /* inner: of all nests */
	struct idmap by_pid; /* inner: index + 1 of a process */
};

struct sum *sum_new(const struct sum_options *options);
/* 0 or a negative code, as trace_read(). */
int sum_read(struct sum *sum, int fd, const char *name, struct sb_err *err);
void sum_free(struct sum *sum);

/* NULL: unknown. */
const struct sum_process *sum_process(const struct sum *sum, int32_t pid);

/* A quantile of durations, 0 to 1, within 3 %; -1: unknown. */
double sum_quantile(const struct sum *sum, const struct sum_times *times, double q);

#endif
