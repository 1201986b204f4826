/* SPDX-License-Identifier: MIT */
/*
 * One object a line: {"event_id":7,"ts":0.000001234,"type":"native","name":"f","phase":"X","pid":1,
 * "tid":2,"dur_us":5.678,"args":{"thread":1,"module":"m"}}. ts is in seconds since the trace began.
 * Lines with the phase "M" hold no event: the first, "trace", describes the trace, the last, "end",
 * closes it; "process" and "thread" give names. "thread" in args tells threads apart whose tid is
 * unknown or was given twice.
 */
#include "write-priv.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 4 * 24 + 128 };

static void put_meta(struct trace_writer *w, const char *type, const char *quoted, uint64_t ns,
		     int32_t pid, int32_t tid)
{
	char text[160], *at = stpcpy(text, "{\"event_id\":0,\"ts\":");

	at = trace_put_decimal(at, ns, 9);
	snprintf(at, 100, ",\"type\":\"%s\",\"name\":", type);
	trace_out_text(&w->out, text);
	trace_out_text(&w->out, quoted);
	snprintf(text, sizeof(text),
		 ",\"phase\":\"M\",\"pid\":%" PRId32 ",\"tid\":%" PRId32 ",\"args\":{", pid, tid);
	trace_out_text(&w->out, text);
}

static void jl_begin(struct trace_writer *w)
{
	char *version = trace_quoted(w->version), *command = trace_quoted(w->command), text[160];

	put_meta(w, "trace", "\"sbinject\"", 0, 0, 0);
	trace_out_text(&w->out, "\"schema\":\"sbinject.trace/1\",\"version\":");
	trace_out_text(&w->out, version);
	trace_out_text(&w->out, ",\"command\":");
	trace_out_text(&w->out, command);
	snprintf(text, sizeof(text), ",\"begin_ns\":%" PRIu64 ",\"begin_unix_ns\":%" PRIu64 "}}\n",
		 w->begin_ns, w->begin_unix_ns);
	trace_out_text(&w->out, text);
	free(version);
	free(command);
}

static void jl_end(struct trace_writer *w, const struct trace_end *end)
{
	char text[160];

	put_meta(w, "end", "\"sbinject\"", since_begin(w, end->end_ns), 0, 0);
	snprintf(text, sizeof(text),
		 "\"spans\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"filtered\":%" PRIu64 "}}\n",
		 end->spans, end->lost, end->filtered);
	trace_out_text(&w->out, text);
}

static void jl_process(struct trace_writer *w, const struct trace_process *process)
{
	char *name = trace_quoted(process->name);

	put_meta(w, "process", name, 0, process->pid, 0);
	trace_out_text(&w->out, "}}\n");
	free(name);
}

static void jl_thread(struct trace_writer *w, uint32_t id, const struct trace_thread *thread)
{
	char *name = trace_quoted(thread->name), text[40];

	put_meta(w, "thread", name, 0, thread->pid, thread->tid);
	snprintf(text, sizeof(text), "\"thread\":%" PRIu32 "}}\n", id);
	trace_out_text(&w->out, text);
	free(name);
}

static char *piece(const struct trace_function *function, bool delay)
{
	char *name = trace_quoted(function->name ? function->name : "?"), *text;
	const char *type = trace_code_name[function->code];

	if (asprintf(&text, ",\"type\":\"%s\",\"name\":%s,\"phase\":\"X\",\"pid\":",
		     delay ? "delay" : type, name) < 0)
		abort();
	free(name);
	return text;
}

static void jl_function(struct trace_writer *w, uint32_t id, const struct trace_function *function)
{
	struct writer_function *f = &w->function[id];

	f->piece[TRACE_CALL] = piece(function, false);
	f->piece[TRACE_DELAY] = piece(function, true);
	f->module = trace_quoted(function->module);
}

static void jl_span(struct trace_writer *w, const struct trace_span *span)
{
	const struct writer_thread *t = &w->thread[span->thread];
	const struct writer_function *f = &w->function[span->function];
	char *at = stpcpy(trace_out_room(&w->out, NUMBERS), "{\"event_id\":");

	at = trace_put_number(at, w->spans);
	at = trace_put_decimal(stpcpy(at, ",\"ts\":"), since_begin(w, span->start_ns), 9);
	trace_out_took(&w->out, at);
	trace_out_put(&w->out, f->piece[span->kind], f->len[span->kind]);
	at = trace_put_number(trace_out_room(&w->out, NUMBERS), (uint32_t)t->pid);
	at = trace_put_number(stpcpy(at, ",\"tid\":"), (uint32_t)t->tid);
	at = trace_put_decimal(stpcpy(at, ",\"dur_us\":"), span->dur_ns, 3);
	at = trace_put_number(stpcpy(at, ",\"args\":{\"thread\":"), span->thread);
	if (span->kind == TRACE_DELAY && f->code != TRACE_NATIVE)
		at = stpcpy(stpcpy(stpcpy(at, ",\""), trace_code_name[f->code]), "\":true");
	trace_out_took(&w->out, stpcpy(at, ",\"module\":"));
	trace_out_text(&w->out, f->module);
	if (span->n_values || span->kernel || span->stack)
		trace_put_values_json(&w->out, span);
	trace_out_put(&w->out, "}}\n", 3);
}

const struct trace_encoder trace_jsonl = {
	.begin = jl_begin,
	.process = jl_process,
	.thread = jl_thread,
	.function = jl_function,
	.span = jl_span,
	.end = jl_end,
};
