/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_PIPE_H
#define SB_TRACE_PIPE_H

#include <stddef.h>
#include "src/base/err.h"
#include "trace/event.h"

/*
 * The pipe through which the tracer hands recorded calls to the command line, which writes them to
 * a file with the rights of its user. Both ends are the same binary.
 *
 * A message is a struct trace_message and its payload. The first one is TRACE_MESSAGE_BEGIN. The
 * order of declarations and spans is that of trace/event.h. The last one is TRACE_MESSAGE_END; a
 * pipe without it is that of a tracer that died.
 */
enum trace_message_type {
	TRACE_MESSAGE_BEGIN = 1, /* struct trace_begin */
	TRACE_MESSAGE_PROCESS,	 /* struct trace_declared, name */
	TRACE_MESSAGE_THREAD,	 /* the same */
	TRACE_MESSAGE_FUNCTION,	 /* the same, and the module's name */
	TRACE_MESSAGE_KERNEL,	 /* the same, a text by its number; before the first call with it */
	TRACE_MESSAGE_VALUES,	 /* struct trace_values, before the first call with them */
	TRACE_MESSAGE_SPANS,	 /* struct trace_plain[] */
	TRACE_MESSAGE_VALUED,	 /* struct trace_valued[] */
	TRACE_MESSAGE_MAPS,	 /* a pid as int32_t, lines of its /proc/PID/maps: those of code; no
				    line: it is gone */
	TRACE_MESSAGE_STACK, /* of the span that follows: struct trace_stack_head, words, frames */
	TRACE_MESSAGE_ADDRESS, /* struct trace_address: a text by its number is this function's */
	TRACE_MESSAGE_END,     /* struct trace_end */
};

struct trace_message {
	uint32_t type; /* enum trace_message_type */
	uint32_t size; /* of the payload, bytes; at most TRACE_MESSAGE_MAX */
};

enum { TRACE_MESSAGE_MAX = 1 << 20 };

struct trace_begin {
	uint64_t begin_ns, begin_unix_ns; /* as in struct trace_about */
};

/* Names end with a zero byte. Fields that a declaration does not have are 0. */
struct trace_declared {
	uint32_t id;
	int32_t pid, tid;
	uint32_t code; /* enum trace_code */
};

/* Those of targets, and of what devices do. */
enum { TRACE_VALUE_SETS = 260, TRACE_VALUES_DEVICE = 256 };

/* The values of a target's calls: those of each struct trace_valued with the number `set`. */
struct trace_values {
	uint32_t set, n; /* below TRACE_VALUE_SETS */
	struct {
		char name[VALUE_NAME_SIZE];
		uint32_t type; /* enum value_type */
	} value[VALUE_MAX];
};

/* A span without values, as struct trace_span. */
struct trace_plain {
	uint64_t start_ns, dur_ns;
	uint32_t thread, function, kind;
	uint32_t kernel; /* number of the kernel's name; 0: none */
};

/* ... with values, raw, in the order of its set. */
struct trace_valued {
	struct trace_plain plain;
	uint32_t set, unknown; /* unknown: bits of values that are not known */
	uint64_t value[VALUE_MAX];
};

/* A stack as the target copied it, from the return address on: see struct sb_page_stack. */
struct trace_stack_head {
	int32_t pid;
	uint32_t end; /* enum sb_page_stack_end, unchecked */
	uint64_t sp, bp, bx, r12[4];
	uint32_t size;	     /* bytes of words; the rest is the frames of an interpreter ... */
	uint32_t frames_end; /* ... and enum sb_page_frames_end */
};

/* The function that begins at this address of a process, by the maps before it. */
struct trace_address {
	uint32_t number;
	int32_t pid;
	uint64_t address;
};

/* Bytes to be written. Zeros are an empty one. */
struct trace_bytes {
	char *data;
	size_t len, cap;
};

void trace_put(struct trace_bytes *b, enum trace_message_type type, const void *payload,
	       size_t size);
void trace_put_process(struct trace_bytes *b, const struct trace_process *process);
void trace_put_thread(struct trace_bytes *b, const struct trace_thread *thread);
void trace_put_function(struct trace_bytes *b, const struct trace_function *function);
void trace_put_kernel(struct trace_bytes *b, uint32_t number, const char *name);
void trace_put_values(struct trace_bytes *b, const struct trace_values *values);
void trace_put_spans(struct trace_bytes *b, const struct trace_plain *span, size_t n);
void trace_put_valued(struct trace_bytes *b, const struct trace_valued *span, size_t n);

/*
 * The next whole message of the bytes from *at on, which then is behind it. False: none is whole.
 * The payload is not aligned.
 */
bool trace_get(const struct trace_bytes *b, size_t *at, struct trace_message *message,
	       const char **payload);

#endif
