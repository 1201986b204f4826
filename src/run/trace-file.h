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
struct kernels;
struct devices;

struct trace_file_config {
	const char *path;
	enum trace_format format;
	const char *version, *command; /* for the file; valid until trace_file_close() */
	/* The number of the API, plus 1, of a function that launches kernels; 0: it does not. */
	uint32_t (*launcher)(const struct trace_function *function);
};

enum { TRACE_FILE_INPUTS = 2 };

/*
 * Opens the file, whose contents stay for now, and makes the pipe. *fd: the end for the tracer,
 * which the caller closes once the tracer has it. kernel: of a second pipe, for the calls of the
 * kernel's functions beside the others; NULL: there is none. NULL with err: SB_EFILE, SB_ESYS.
 */
struct trace_file *trace_file_open(const struct trace_file_config *cfg, int *fd, int *kernel,
				   struct sb_err *err);
/* The hooks are in force: the trace begins, and takes the place of the file's contents. */
void trace_file_begin(struct trace_file *f);
/* What to poll for input, TRACE_FILE_INPUTS of them; -1: it has ended. NULL is harmless. */
struct pollfd;
void trace_file_poll(const struct trace_file *f, struct pollfd *fds);

/* Reads what the pipe has, at most a few megabytes, and writes it. Does not wait for the tracer. */
void trace_file_read(struct trace_file *f);

/*
 * Reads the rest, until the tracer closes its end, and frees. Without trace_file_begin() nothing is
 * written. end: as the tracer counted; all zero
 * if it died. Errors: SB_EFILE (a write failed, all before it is in the file), SB_EINTERNAL (the
 * numbers of spans that were sent and written differ). NULL is harmless. launches: NULL, or what
 * was launched in the recorded calls, which the caller frees, with kernels_free() first; NULL is
 * stored if no function was one that launches. devices: the same of what devices did, with
 * devices_free().
 */
int trace_file_close(struct trace_file *f, struct trace_end *end, struct kernels **launches,
		     struct devices **devices, struct sb_err *err);

#endif
