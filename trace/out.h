/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_OUT_H
#define SB_TRACE_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Bytes on their way to a descriptor, written in pieces of TRACE_OUT_SIZE. The first failure of a
 * write is kept; from then on everything is dropped. So the callers need not look at each step.
 */
enum { TRACE_OUT_SIZE = 256 << 10 };

struct trace_out {
	int fd;	   /* borrowed */
	int error; /* errno of the first failure */
	char *buf; /* TRACE_OUT_SIZE */
	size_t n;
	uint64_t bytes; /* written */
};

int trace_out_init(struct trace_out *out, int fd); /* 0, or -1: no memory */
void trace_out_done(struct trace_out *out);	   /* writes nothing */
void trace_out_flush(struct trace_out *out);
void trace_out_put(struct trace_out *out, const void *data, size_t n);

/* Room for `most` bytes, which the caller fills and then adds with trace_out_took(). */
static inline char *trace_out_room(struct trace_out *out, size_t most)
{
	if (out->n + most > TRACE_OUT_SIZE)
		trace_out_flush(out);
	return out->buf + out->n;
}

static inline void trace_out_took(struct trace_out *out, const char *end)
{
	out->n = (size_t)(end - out->buf);
}

static inline void trace_out_text(struct trace_out *out, const char *text)
{
	trace_out_put(out, text, strlen(text));
}

/* Decimal digits; they return the end. A number takes at most 20 bytes, a decimal 21. */
char *trace_put_number(char *at, uint64_t n);
/* n / 10^digits with all its digits: 1234567 and 3 give 1234.567. digits is 3 or 9. */
char *trace_put_decimal(char *at, uint64_t n, unsigned int digits);

/* A name in quotes, as JSON, without a control character or a byte above 0x7e. NULL: null. A name
 * of more than TRACE_NAME_MAX bytes is cut. The caller frees. */
enum { TRACE_NAME_MAX = 16 << 10 };
char *trace_quoted(const char *name);

/* The same name as UTF-8 (src/base/json.h), without quotes. NULL: "?". The caller frees. */
char *trace_utf8(const char *name);

#endif
