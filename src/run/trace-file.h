/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_FILE_H
#define SB_TRACE_FILE_H

#include "src/base/err.h"
#include "trace/write.h"

/*
 * trace -o, the command line's half: reads recorded calls from the tracer's pipe
 * (src/session/trace-pipe.h) and writes them into a file, with the rights of the user.
 */
struct trace_file;

struct trace_file_config {
	const char *path;
	enum trace_format format;
	const char *version, *command; /* for the file; valid until trace_file_close() */
};

/*
 * Opens the file, whose contents stay for now, and makes the pipe. *fd: the end for the tracer,
 * which the caller closes once the tracer has it. NULL with err: SB_EFILE, SB_ESYS.
 */
struct trace_file *trace_file_open(const struct trace_file_config *cfg, int *fd,
				   struct sb_err *err);
/* The hooks are in force: the trace begins, and takes the place of the file's contents. */
void trace_file_begin(struct trace_file *f);
int trace_file_fd(const struct trace_file *f); /* to poll for input; -1: it has ended */

/* Reads what the pipe has, at most a few megabytes, and writes it. Does not wait for the tracer. */
void trace_file_read(struct trace_file *f);

/*
 * Reads the rest, until the tracer closes its end, and frees. Without trace_file_begin() nothing is
 * written. end: as the tracer counted; all zero
 * if it died. Errors: SB_EFILE (a write failed, all before it is in the file), SB_EINTERNAL (the
 * numbers of spans that were sent and written differ). NULL is harmless.
 */
int trace_file_close(struct trace_file *f, struct trace_end *end, struct sb_err *err);

#endif
