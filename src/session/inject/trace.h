/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_TRACE_H
#define SB_SESSION_TRACE_H

#include "inject/clock.h"
#include "inject/page-trace.h"
#include "trace/event.h"

/*
 * The recording of single calls (trace -o): a thread of the tracer takes the events out of the
 * control pages (inject/page-trace.h), makes spans with names of them, and writes them into the
 * pipe to the command line (src/session/trace-pipe.h). It waits where the pipe is full; the chunks
 * fill meanwhile, and what finds none is counted as lost. No thread of a target is stopped for it,
 * and the session's own thread never waits for the pipe.
 *
 * The session's thread calls the functions below. They copy what they are given.
 */
struct tracing;
struct trace_values;

struct tracing_config {
	int fd; /* the pipe; owned from here on */
	const struct clock *clk;
	const struct hook_cost *cost; /* what its measurement does not contain of a delay */
	uint64_t min_ns;	      /* shorter calls are not recorded */
	double per_second;	      /* events at most; 0: no limit */
	bool stacks;		      /* calls come with their stacks, for their callers */
	bool follow; /* every new thread is named: the one without a name is the first */
};

/* NULL: no thread could be started. */
struct tracing *tracing_open(const struct tracing_config *cfg);

/* A page from which to take events; until tracing_page_gone(), which takes the last ones. */
void tracing_page(struct tracing *t, struct page *page);
void tracing_page_gone(struct tracing *t, struct page *page);
/* A process leaves the page: takes the last of its events. Its index is still in use. */
void tracing_process_gone(struct tracing *t, struct page *page, uint32_t proc);

/*
 * The thread has this pointer from this moment on. since: whether it had it before, too (it was
 * found running).
 */
void tracing_thread(struct tracing *t, pid_t pid, pid_t tid, uint64_t pointer, bool since);
/* Events of a thread that was not named wait, for a little while: name the threads of `pid`. */
bool tracing_asks(struct tracing *t, pid_t *pid);
/* A new process, or a new image of one: its threads so far are gone with the old one. */
void tracing_process(struct tracing *t, pid_t pid, const char *name);

/* Code was mapped or unmapped, or may have been. From any thread. NULL is harmless. */
void tracing_mapped(struct tracing *t, pid_t pid);

/*
 * What devices did (device-read.c). A track or a function gets a number that no other has;
 * tracing_device_work() takes spans of these, whose values are those of the set in each.
 * tracing_waits(): bytes that the pipe has not taken yet.
 */
struct trace_valued;
uint32_t tracing_device_track(struct tracing *t, pid_t pid, const char *name);
uint32_t tracing_device_function(struct tracing *t, const char *name, const char *kind);
void tracing_device_values(struct tracing *t, const struct trace_values *values);
void tracing_device_work(struct tracing *t, const struct trace_valued *span, size_t n);
size_t tracing_waits(struct tracing *t);

/* Names: of the target with this span_bit, of the function with this number. */
void tracing_target(struct tracing *t, uint8_t bit, const char *name, const char *module);
void tracing_function(struct tracing *t, uint32_t number, const char *name, const char *module);

/* The values of the calls of the target with this span_bit. Bits of those that are what is
 * returned, and that are in no register. */
struct tracing_masks {
	uint32_t returned, stacked;
	bool preset;	/* the names of the values are those of a preset ... */
	bool addresses; /* ... in which what is launched may be an address in the program */
};
void tracing_values(struct tracing *t, uint8_t bit, const struct trace_values *values,
		    const struct tracing_masks *masks);

struct tracing_sums {
	uint64_t calls, delays, device; /* recorded */
	uint64_t lost, unseen, filtered;
	uint64_t stacks, stacks_lost; /* of calls recorded */
};

/* No page is left: writes the end, and waits until the command line has read it or is gone. */
void tracing_close(struct tracing *t, struct tracing_sums *sums);

/* ---- trace-threads.c and trace-clock.c, for trace.c ---- */

/*
 * Which thread an event is of, by the thread pointer and the time. Not thread-safe.
 *
 * trace_thread_of(): its track; NULL: not known, or not yet. A track is declared by its user.
 */
struct trace_track {
	uint32_t id; /* from 1 */
	pid_t pid, tid;
	uint64_t owner; /* ~FS base; 0: of an image that is gone */
	uint64_t from;	/* TSC */
	bool declared;
	uint32_t older; /* number of the track that had this pointer before; 0: none */
};

struct trace_threads {
	struct trace_track **track; /* by id - 1 */
	size_t n;
	uint32_t *slot; /* the newest track of a pid and owner, by hash; 0: free */
	size_t slots;
};

void trace_threads_free(struct trace_threads *all);
struct trace_track *trace_thread_add(struct trace_threads *all, pid_t pid, pid_t tid,
				     uint64_t owner, uint64_t from);
struct trace_track *trace_thread_of(const struct trace_threads *all, pid_t pid, uint64_t owner,
				    uint64_t ticks);
bool trace_thread_known(const struct trace_threads *all, pid_t pid, pid_t tid);
void trace_threads_gone(struct trace_threads *all, pid_t pid); /* with their image */

/*
 * TSC to CLOCK_MONOTONIC, in ns: a chain of straight lines, so that a time once said remains, and
 * times keep their order. trace_clock_follow() adds a line where it is time for one: after 10 ms,
 * then after twice the time, at last once a second. Call it as often. Not thread-safe.
 */
struct trace_line {
	uint64_t ticks, ns;
	double ns_per_tick;
};

struct trace_clock {
	struct trace_line *line;
	size_t n;
	uint64_t next_ns; /* when to add the next one */
};

void trace_clock_open(struct trace_clock *clk, double ticks_per_ns);
void trace_clock_follow(struct trace_clock *clk);
uint64_t trace_clock_ns(const struct trace_clock *clk, uint64_t ticks);
void trace_clock_free(struct trace_clock *clk);

#endif
