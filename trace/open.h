/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_OPEN_H
#define SB_TRACE_OPEN_H

#include "read-priv.h"

/*
 * Slices of Chrome's traces on their way to spans: the threads by the numbers that events name them
 * with, and for each of them the slices that are not over. A pair (B, E) is a span at its end. A
 * complete event (X) waits until a later one of its thread shows that no call made in it can
 * follow: so spans leave in the order of their ends, whether the file has them by start or by end.
 */
struct open_slices *open_new(struct reader *r);
void open_free(struct open_slices *open);

/* Events name the thread `id` of the reader by pid and tid; there may be several names. 0 or a
 * negative code. */
int open_alias(struct open_slices *open, int32_t pid, int32_t tid, uint32_t id);
uint32_t open_thread(const struct open_slices *open, int32_t pid, int32_t tid); /* 0: unknown */

/* They hand on what is complete. open_end() needs the time of the end in start_ns. */
int open_complete(struct open_slices *open, const struct trace_span *span);
int open_begin(struct open_slices *open, const struct trace_span *span);
int open_end(struct open_slices *open, const struct trace_span *span);
int open_rest(struct open_slices *open); /* the end of the file */

#endif
