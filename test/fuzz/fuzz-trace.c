/* SPDX-License-Identifier: MIT */
/*
 * A trace from elsewhere, in any format: it is read, or refused with a reason; what can be read can
 * be summed up, shown in every form, and copied; and the copy has the same spans.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "src/out/report.h"
#include "trace/copy.h"
#include "trace/sum.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct spans {
	uint64_t n, sum; /* of starts and durations, in any order */
	uint32_t threads, functions;
};

static int on_thread(void *ctx, const struct trace_thread *thread)
{
	struct spans *spans = ctx;

	MUST(thread->id && thread->id <= spans->threads + 1);
	spans->threads += thread->id > spans->threads;
	return 0;
}

static int on_function(void *ctx, const struct trace_function *function)
{
	struct spans *spans = ctx;

	MUST(function->id == ++spans->functions && function->name);
	return 0;
}

static int on_span(void *ctx, const struct trace_span *span)
{
	struct spans *spans = ctx;

	MUST(span->thread && span->thread <= spans->threads);
	MUST(span->function && span->function <= spans->functions);
	spans->n++;
	spans->sum += span->dur_ns * 31;
	return 0;
}

static int read_spans(int fd, struct spans *spans, struct trace_reading *reading)
{
	static const struct trace_sink sink = {
		.thread = on_thread,
		.function = on_function,
		.span = on_span,
	};
	struct sb_err err = { 0 };
	int ret;

	*spans = (struct spans){ 0 };
	lseek(fd, 0, SEEK_SET);
	ret = trace_read(fd, "fuzz", &sink, spans, reading, &err);
	MUST(ret == 0 || (err.code == SB_EFILE && *err.what));
	MUST(reading->bytes <= (uint64_t)lseek(fd, 0, SEEK_END));
	return ret;
}

/* All roles, whatever the names are. */
static struct sum_role any_role(const struct trace_function *function)
{
	return (struct sum_role){ (enum launch_role)(function->id % 3), function->id % SUM_APIS,
				  true };
}

static enum lock_op any_lock(const struct trace_function *function)
{
	return (enum lock_op)(function->id % (LOCK_FORGET + 1));
}

static void show(int fd)
{
	struct sum_options options = { .slowest = 5,
				       .gaps = 5,
				       .timeline = true,
				       .stacks = true,
				       .role = any_role,
				       .lock = any_lock };
	struct sum *sum = sum_new(&options);
	static FILE *nowhere;
	struct sb_err err = { 0 };

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	MUST(nowhere);
	lseek(fd, 0, SEEK_SET);
	MUST(!sum_read(sum, fd, "fuzz", &err));
	out_report(nowhere, sum, "fuzz");
	out_report_slowest(nowhere, sum);
	out_report_gaps(nowhere, sum);
	out_report_timeline(nowhere, sum);
	out_report_folded(nowhere, sum);
	out_report_flame(nowhere, sum, "fuzz");
	free(out_report_json(sum, "fuzz"));
	sum_free(sum);
}

static void copy(int fd, const struct spans *spans, enum trace_format format)
{
	static const struct trace_filter all;
	struct trace_reading reading;
	struct sb_err err = { 0 };
	int out = memfd_create("copy", MFD_CLOEXEC);
	struct spans again;

	MUST(out >= 0);
	lseek(fd, 0, SEEK_SET);
	MUST(!trace_copy(fd, "fuzz", out, format, &all, &reading, &err));
	MUST(!read_spans(out, &again, &reading));
	MUST(again.n == spans->n && reading.ours && !*reading.damage);
	if (format == TRACE_PFTRACE)
		MUST(again.sum == spans->sum);
	close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct trace_reading reading;
	struct spans spans;

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (read_spans(fd, &spans, &reading) == 0) {
		show(fd);
		for (int format = 0; format < 3; format++)
			copy(fd, &spans, (enum trace_format)format);
	}
	close(fd);
	return 0;
}
