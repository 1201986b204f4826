/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_READ_H
#define SB_TRACE_READ_H

#include "event.h"
#include "src/base/err.h"
#include "write.h"

/*
 * Readers of traces. They read a stream once, from a file or a pipe, and hand on what they find, in
 * the structs and in the order of event.h; ids are given anew, from 1. Memory does not grow with
 * the number of spans. A trace is a file from elsewhere: names, functions, threads, processes and
 * open slices are bounded, and what is not understood is skipped and counted.
 *
 * Beside what write.h writes, Chrome traces of other programs are read, an array or an object with
 * "traceEvents": complete events (X) and pairs (B, E) by numbers pid and tid. They are put into the
 * order of their ends where each thread's events come by start or by end.
 *
 * Each function of a sink returns 0, or a negative value that ends the reading. Those that are NULL
 * are not called. about comes first, once, in any case: begin_ns is 0 where the file does not say
 * it.
 */
struct trace_sink {
	int (*about)(void *ctx, const struct trace_about *about);
	int (*process)(void *ctx, const struct trace_process *process);
	int (*thread)(void *ctx, const struct trace_thread *thread);
	int (*function)(void *ctx, const struct trace_function *function);
	int (*span)(void *ctx, const struct trace_span *span);
	int (*end)(void *ctx, const struct trace_end *end);
};

struct trace_reading {
	enum trace_format format;
	bool ours;	  /* written by write.h */
	bool ended;	  /* the trace's end was read: nothing is missing */
	bool cut;	  /* the file ends within an event, or there is no end */
	uint64_t bytes;	  /* read and understood; where it is cut, up to there */
	uint64_t spans;	  /* handed on */
	uint64_t skipped; /* events that are not understood or have no counterpart */
	uint64_t open;	  /* slices that began and did not end */
	char damage[160]; /* not empty: from `bytes` on the file is damaged; the reason */
};

/*
 * Reads fd up to its end. name is for errors. Returns 0, also for a trace that is cut or damaged
 * (reading says so); -SB_EFILE: not a trace, unreadable, or more names than are held; or what a
 * function of the sink returned.
 */
int trace_read(int fd, const char *name, const struct trace_sink *sink, void *ctx,
	       struct trace_reading *reading, struct sb_err *err);

#endif
