/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_WRITE_H
#define SB_TRACE_WRITE_H

#include "event.h"
#include "src/base/err.h"

/*
 * Writers of traces (event.h). The bytes are collected and written in large pieces. A file that is
 * cut off anywhere, by SIGKILL or a full disk, stays readable up to there: no format has an index
 * or an end that a reader needs.
 *
 *	TRACE_PFTRACE	Perfetto's TrackEvent protobuf, about 42 bytes a span
 *	TRACE_CHROME	Chrome's trace, as a JSON array of complete events
 *	TRACE_JSONL	one JSON object a line
 *
 * Perfetto and Chrome show a thread as a stack of slices. So there a call is made to end no earlier
 * than the calls made in it, and calls of one thread that overlap and are not nested (coroutines)
 * go to further tracks of that thread. What was moved keeps its true start and duration in its
 * arguments, and the readers (read.h) give the true ones.
 */
enum trace_format { TRACE_PFTRACE, TRACE_CHROME, TRACE_JSONL };

/*
 * The format of a name ("pftrace", "json", "jsonl"), or, if name is NULL, of the path's suffix:
 * .pftrace or .perfetto-trace, .json, .jsonl. Returns 0 or -SB_EUSAGE.
 */
int trace_format_of(const char *path, const char *name, enum trace_format *format,
		    struct sb_err *err);
const char *trace_format_name(enum trace_format format);

/*
 * Opens a writer on fd, which it borrows: the caller closes fd after trace_writer_close(). fd is at
 * the place where the trace is to begin; a pipe will do. A write waits where fd does (EAGAIN is
 * waited for by poll()). NULL with err: no memory, or the first write failed. `about` is copied.
 *
 * A writer is for one thread at a time.
 */
struct trace_writer *trace_writer_open(int fd, enum trace_format format,
				       const struct trace_about *about, struct sb_err *err);

/*
 * Add to the trace; 0 or -SB_EFILE, -SB_ENOMEM, -SB_EINTERNAL (an id that was not declared, or is
 * 0: nothing is written). The first failure of a write is kept: from then on nothing more is
 * written and each of these returns it again, at no cost.
 */
int trace_write_process(struct trace_writer *w, const struct trace_process *process);
int trace_write_thread(struct trace_writer *w, const struct trace_thread *thread);
int trace_write_function(struct trace_writer *w, const struct trace_function *function);
int trace_write_span(struct trace_writer *w, const struct trace_span *span);

/* Writes what is collected. To be called now and then (a second) where spans come slowly. */
int trace_writer_flush(struct trace_writer *w);

/* The errno of the first failure (ENOSPC, EPIPE), 0: none. */
int trace_writer_error(const struct trace_writer *w);

/* Bytes given to write() so far. */
uint64_t trace_writer_bytes(const struct trace_writer *w);

/*
 * Writes the end and the rest, and frees the writer in any case. end NULL: none is written, and the
 * trace reads as one that was cut off. Returns 0 or the first failure, with its errno in
 * err->sys_errno; what came before it is in the file.
 */
int trace_writer_close(struct trace_writer *w, const struct trace_end *end, struct sb_err *err);

#endif
