/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_FILTER_H
#define SB_TRACE_FILTER_H

#include <stddef.h>
#include "event.h"

/* Which spans of a trace are asked for. All fields are borrowed; zeros ask for all. */
struct trace_filter {
	const char *function; /* a glob of the name, or MODULE:NAME */
	const char *thread;   /* a tid, or a glob of the name */
	const int32_t *pid;
	size_t n_pids;
	uint64_t from_ns,
		to_ns; /* calls that begin in [from, to), since the trace began; to 0: all */
};

bool trace_filter_thread(const struct trace_filter *filter, const struct trace_thread *thread);
bool trace_filter_function(const struct trace_filter *filter,
			   const struct trace_function *function);
bool trace_filter_time(const struct trace_filter *filter, uint64_t since_begin_ns);

#endif
