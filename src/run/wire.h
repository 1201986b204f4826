/* SPDX-License-Identifier: MIT */
#ifndef SB_WIRE_H
#define SB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Messages from the tracer to the command line, over a stream socket; both ends are the same
 * binary. The tracer never blocks: what the socket does not accept is kept. While much is kept (the
 * command line is stopped or stalled), status messages are dropped.
 *
 * In the other direction: WIRE_QUIT, a single byte; or WIRE_ASK, a uint32_t length and a request in
 * JSON (control.h). Each request gets one WIRE_ANSWER, in order.
 */
enum wire_type {
	WIRE_LOG = 1, /* one byte enum log_level, then text */
	WIRE_READY,   /* hooks are in force; text for the user */
	WIRE_ERROR,   /* struct sb_err: nothing was changed, or all was removed again */
	WIRE_STATUS,  /* struct wire_status */
	WIRE_ANSWER,  /* JSON, to a WIRE_ASK */
	WIRE_END,     /* hooks are removed: uint32_t enum session_end, then the result as JSON */
};

#define WIRE_QUIT 'Q'
#define WIRE_ASK  'A'

struct wire_status_target {
	uint64_t hits, delayed, injected_ns, overrun_ns;
	uint64_t calls, calls_ns; /* of a timed target: calls that returned, and their time */
};

struct wire_out {
	int fd;
	char *kept;
	size_t len, cap;
	bool broken; /* the other end is gone */
};

void wire_open(struct wire_out *out, int fd); /* makes fd non-blocking */
void wire_send(struct wire_out *out, enum wire_type type, const void *a, size_t na, const void *b,
	       size_t nb);
bool wire_flush(struct wire_out *out); /* true: nothing is kept */
void wire_close(struct wire_out *out);

struct wire_in {
	int fd;
	char *buf;
	size_t len, cap;
};

/* Reads what is available. 0, or -1 when the other end is gone. Blocks only if fd does. */
int wire_read(struct wire_in *in);
/* The next complete message; its payload is valid until the next call. False: none yet. */
bool wire_next(struct wire_in *in, enum wire_type *type, char **payload, size_t *len);

#endif
