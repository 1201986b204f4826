/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_EVENT_H
#define SB_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include "src/base/value.h"

/*
 * What a trace consists of: timed calls of functions as events. The writers (write.h) take these
 * structs, the readers (read.h) give them; between them lies a file. Nothing here knows of
 * sessions.
 *
 * Order: a process is declared before its threads, a thread and a function before the first span
 * that names them. A declaration with an id (or a pid) that was declared before replaces its names:
 * a process that execs, a thread that is renamed. Spans of one thread come in the order in which
 * the calls ENDED, so a call comes after the calls made in it. Between threads no order is
 * promised.
 *
 * All strings are borrowed for the time of the call. They are bytes from outside, of any length,
 * and need not be UTF-8; NULL is an unknown name.
 */
enum trace_kind {
	TRACE_CALL,
	TRACE_DELAY, /* a delay that sbinject gave, inside or beside a call */
};

struct trace_about {
	const char *version;	/* of the program that recorded it */
	const char *command;	/* the command line that recorded it */
	uint64_t begin_ns;	/* CLOCK_MONOTONIC at ts 0; no span begins earlier */
	uint64_t begin_unix_ns; /* CLOCK_REALTIME at the same instant */
};

struct trace_process {
	int32_t pid;
	const char *name;
};

struct trace_thread {
	uint32_t id; /* a track, unique in the trace, from 1; a tid that is used again is another
			one */
	int32_t pid; /* its process, declared before */
	int32_t tid; /* 0: unknown */
	const char *name;
	bool apart; /* the same thread's calls elsewhere, in the kernel: another track beside it */
};

/* Where the code of a function is. */
enum trace_code {
	TRACE_NATIVE,
	TRACE_PYTHON,
	TRACE_KERNEL, /* functions, tracepoints, requests and handlers of the kernel, and time off
			 the processor */
	TRACE_DEVICE, /* kernels, copies and memsets that a device ran, on tracks of their own */
	TRACE_CODES
};

/* What it is called in files. */
extern const char *const trace_code_name[TRACE_CODES];

struct trace_function {
	uint32_t id; /* from 1; small numbers make small files */
	enum trace_code code;
	const char *name;
	const char *module; /* of a Python function, the module's dotted name */
};

/* How the functions begin whose calls are times without a processor; their code is TRACE_KERNEL. */
#define TRACE_OFF_CPU "off CPU: "

/*
 * The modules of functions whose code is TRACE_DEVICE, and the values of their spans that say where
 * they ran and how much they copied.
 */
#define TRACE_DEVICE_KERNEL "kernel"
#define TRACE_DEVICE_COPY   "copy"
#define TRACE_DEVICE_MEMSET "memset"
#define TRACE_DEVICE_NUMBER "device"
#define TRACE_DEVICE_BYTES  "bytes"

/* What struct trace_span.kernel is called in files; no value has that name. */
#define TRACE_KERNEL_NAME "kernel_name"

/* An argument, or what was returned. */
struct trace_value {
	char name[VALUE_NAME_SIZE];
	enum value_type type; /* files tell i64, u64, ptr, bool and str apart, and these are read */
	bool known;	      /* else value is 0 */
	uint64_t value;	      /* as in src/base/value.h */
	const char *text;     /* of a str that is known */
};

/* What the callers of a call are called in files; no value has these names. */
#define TRACE_STACK	"stack"
#define TRACE_STACK_END "stack_end"
enum { TRACE_FRAMES_MAX = 128 };

/* The callers of a call as its thread's stack had them, the innermost first. */
struct trace_stack {
	uint32_t n;		  /* at most TRACE_FRAMES_MAX */
	const char *const *frame; /* "module:function+0x1f", "module+0x1f", "[0x1f]" */
	const char *end;	  /* why there are no more of them; NULL: the thread begins there */
};

/*
 * One call, or one delay. dur_ns is without the cost of the measurement, of the call itself and of
 * the timed calls made in it. So a call may seem to end a little before the last call made in it: a
 * thread's spans are nested by their starts and by the order in which they come, not by their ends.
 */
struct trace_span {
	uint64_t start_ns, dur_ns; /* start: CLOCK_MONOTONIC */
	uint32_t thread, function; /* ids; of a delay, the function that was delayed */
	enum trace_kind kind;
	uint32_t n_values; /* at most VALUE_MAX; the same names in each call of a function */
	const struct trace_value *value;
	const struct trace_stack *stack; /* NULL: unknown */
	const char *kernel; /* the name of the kernel that it launches or asks for; NULL: unknown */
};

struct trace_end {
	uint64_t spans;	   /* written */
	uint64_t lost;	   /* calls timed but not recorded because the ring was full */
	uint64_t filtered; /* calls timed and left out because a filter asked for it */
	uint64_t end_ns;   /* CLOCK_MONOTONIC */
};

#endif
