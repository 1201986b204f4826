/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_READ_PRIV_H
#define SB_TRACE_READ_PRIV_H

#include <stddef.h>
#include "read.h"

/*
 * A window on the file: buf[at..n] is read and not yet taken. It grows to INPUT_MAX, the largest
 * event that is held.
 */
enum { INPUT_FIRST = 256 << 10, INPUT_MAX = 4 << 20 };

struct input {
	int fd;
	int error; /* errno of read() */
	char *buf;
	size_t at, n, room;
	uint64_t before; /* bytes of the file before buf[0] */
	bool eof;
};

int input_open(struct input *in, int fd); /* 0 or -1: no memory */
void input_close(struct input *in);
/* Reads more behind what is there. False: the end, an error, or the window is INPUT_MAX. */
bool input_more(struct input *in);
static inline uint64_t input_offset(const struct input *in)
{
	return in->before + in->at;
}

/* What was declared, bounded. All return 0 or a negative code; an excess sets err. */
struct decls;
struct reader;

struct decls *decl_new(void);
void decl_free(struct decls *names);

struct reader {
	struct input in;
	const char *name;
	const struct trace_sink *sink;
	void *ctx;
	struct trace_reading *reading;
	struct sb_err *err;
	struct decls *names;
	bool about_given;
	uint64_t begin_ns;
};

/* They hand on what is new or changed. key: what tells threads of a process apart in the file. */
int decl_about(struct reader *r, const struct trace_about *about);
int decl_process(struct reader *r, int32_t pid, const char *name, bool named);
int decl_thread(struct reader *r, int32_t pid, uint64_t key, int32_t tid, const char *name,
		bool named, uint32_t *id);
int decl_function(struct reader *r, enum trace_code code, const char *name, const char *module,
		  uint32_t *id);
/*
 * Adds a value to those of a span, which has room for VALUE_MAX at `room`, unless there is none
 * left, or the name is none of a value or is there already.
 */
void decl_value(struct trace_span *span, struct trace_value *room, const char *name,
		const struct trace_value *value);
/* start_ns is CLOCK_MONOTONIC. */
int decl_span(struct reader *r, const struct trace_span *span);
int decl_end(struct reader *r, const struct trace_end *end);

/* A format: reads from r->in until its end. 0 or a negative code. */
int read_pftrace(struct reader *r);
int read_chrome(struct reader *r);
int read_jsonl(struct reader *r);

#endif
