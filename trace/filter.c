/* SPDX-License-Identifier: MIT */
#include "filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

static bool has_pid(const struct trace_filter *filter, int32_t pid)
{
	for (size_t i = 0; i < filter->n_pids; i++)
		if (filter->pid[i] == pid)
			return true;
	return !filter->n_pids;
}

static bool is_tid(const char *text, int32_t tid)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text && !*end && n == tid;
}

bool trace_filter_thread(const struct trace_filter *filter, const struct trace_thread *thread)
{
	if (!has_pid(filter, thread->pid))
		return false;
	return !filter->thread || is_tid(filter->thread, thread->tid) ||
	       (thread->name && !fnmatch(filter->thread, thread->name, 0));
}

bool trace_filter_function(const struct trace_filter *filter, const struct trace_function *function)
{
	const char *name = function->name ? function->name : "?", *module = function->module;
	char *full;
	bool found;

	if (!filter->function || !fnmatch(filter->function, name, 0))
		return true;
	module = module ? module : "";
	full = must(malloc(strlen(module) + strlen(name) + 2));
	stpcpy(stpcpy(stpcpy(full, module), ":"), name);
	found = !fnmatch(filter->function, full, 0);
	free(full);
	return found;
}

bool trace_filter_time(const struct trace_filter *filter, uint64_t ns)
{
	return ns >= filter->from_ns && (!filter->to_ns || ns < filter->to_ns);
}
