/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_COPY_H
#define SB_TRACE_COPY_H

#include "filter.h"
#include "read.h"
#include "write.h"

/*
 * Reads a trace from `in` and writes it to `out`, in any format, without what the filter leaves
 * out; the end counts that as filtered. A trace that is cut off gives one without an end. 0 or a
 * negative code, as trace_read() and trace_writer_close().
 */
int trace_copy(int in, const char *name, int out, enum trace_format format,
	       const struct trace_filter *filter, struct trace_reading *reading,
	       struct sb_err *err);

#endif
