/* SPDX-License-Identifier: MIT */
#include "copy.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

struct copying {
	const struct trace_filter *filter;
	struct trace_writer *w;
	enum trace_format format;
	int out;
	struct sb_err *err;
	uint64_t begin_ns, spans, filtered;
	bool *thread, *function; /* by id: is it chosen */
	size_t n_threads, n_functions;
	struct trace_end end;
	bool ended;
};

static void mark(bool **list, size_t *n, uint32_t id, bool chosen)
{
	if (id >= *n) {
		size_t want = (size_t)id * 2 + 64;

		*list = must_realloc(*list, want * sizeof(**list));
		memset(*list + *n, 0, (want - *n) * sizeof(**list));
		*n = want;
	}
	(*list)[id] = chosen;
}

static int on_about(void *ctx, const struct trace_about *about)
{
	struct copying *c = ctx;

	c->begin_ns = about->begin_ns;
	c->w = trace_writer_open(c->out, c->format, about, c->err);
	return c->w ? 0 : -(int)c->err->code;
}

static int on_process(void *ctx, const struct trace_process *process)
{
	return trace_write_process(((struct copying *)ctx)->w, process);
}

static int on_thread(void *ctx, const struct trace_thread *thread)
{
	struct copying *c = ctx;
	bool chosen = trace_filter_thread(c->filter, thread);

	mark(&c->thread, &c->n_threads, thread->id, chosen);
	return chosen ? trace_write_thread(c->w, thread) : 0;
}

static int on_function(void *ctx, const struct trace_function *function)
{
	struct copying *c = ctx;
	bool chosen = trace_filter_function(c->filter, function);

	mark(&c->function, &c->n_functions, function->id, chosen);
	return chosen ? trace_write_function(c->w, function) : 0;
}

static int on_span(void *ctx, const struct trace_span *span)
{
	struct copying *c = ctx;

	if (!c->thread[span->thread] || !c->function[span->function] ||
	    !trace_filter_time(c->filter, span->start_ns - c->begin_ns)) {
		c->filtered++;
		return 0;
	}
	c->spans++;
	return trace_write_span(c->w, span);
}

static int on_end(void *ctx, const struct trace_end *end)
{
	struct copying *c = ctx;

	c->end = *end;
	c->ended = true;
	return 0;
}

/* Chrome traces of other programs have no end of ours: such a file is whole if it is not cut. */
static bool is_whole(const struct copying *c, const struct trace_reading *r)
{
	return c->ended || (!r->ours && !r->cut && !*r->damage);
}

int trace_copy(int in, const char *name, int out, enum trace_format format,
	       const struct trace_filter *filter, struct trace_reading *reading, struct sb_err *err)
{
	static const struct trace_sink sink = {
		.about = on_about,
		.process = on_process,
		.thread = on_thread,
		.function = on_function,
		.span = on_span,
		.end = on_end,
	};
	struct copying c = { .filter = filter, .format = format, .out = out, .err = err };
	int ret = trace_read(in, name, &sink, &c, reading, err), closed = 0;

	c.end.spans = c.spans;
	c.end.filtered += c.filtered;
	if (c.w)
		closed = trace_writer_close(c.w, is_whole(&c, reading) ? &c.end : NULL, err);
	free(c.thread);
	free(c.function);
	return ret < 0 ? ret : closed;
}
