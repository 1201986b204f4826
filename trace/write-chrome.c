/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace events, as an array: {"ph":"X","ts":1.234,"dur":5.678,"pid":1,"tid":2,"name":"f",
 * "cat":"native","args":{"module":"m"}}, times in us since the trace began. Viewers know a thread
 * by pid and tid: a thread without a number, a second one of the same number, and further lanes get
 * numbers that no thread has. "args" of the thread's name say which thread it is.
 */
#include "write-priv.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "src/base/must.h"

enum { NUMBERS = 3 * 24 + 128 /* all of an event that is not a name */ };

/* Above the numbers of threads: eight lanes for each of 2^24 threads. */
#define OWN_TIDS 0x40000000u

static void ch_begin(struct trace_writer *w)
{
	char *version = trace_quoted(w->version), *command = trace_quoted(w->command), text[160];

	trace_out_text(&w->out, "[{\"ph\":\"M\",\"name\":\"sbinject_trace\",\"pid\":0,\"tid\":0,"
				"\"ts\":0,\"args\":{\"version\":");
	trace_out_text(&w->out, version);
	trace_out_text(&w->out, ",\"command\":");
	trace_out_text(&w->out, command);
	snprintf(text, sizeof(text), ",\"begin_ns\":%" PRIu64 ",\"begin_unix_ns\":%" PRIu64 "}}",
		 w->begin_ns, w->begin_unix_ns);
	trace_out_text(&w->out, text);
	free(version);
	free(command);
}

static void ch_end(struct trace_writer *w, const struct trace_end *end)
{
	char text[320], *at = stpcpy(text, ",\n{\"ph\":\"M\",\"name\":\"sbinject_end\",\"pid\":0,"
					   "\"tid\":0,\"ts\":");

	at = trace_put_decimal(at, since_begin(w, end->end_ns), 3);
	snprintf(at, 160,
		 ",\"args\":{\"spans\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"filtered\":%" PRIu64
		 "}}\n]\n",
		 end->spans, end->lost, end->filtered);
	trace_out_text(&w->out, text);
}

static void put_name(struct trace_writer *w, const char *kind, int32_t pid, uint32_t tid,
		     const char *quoted, const char *more)
{
	char text[160];

	snprintf(text, sizeof(text),
		 ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRId32 ",\"tid\":%" PRIu32
		 ",\"args\":{\"name\":",
		 kind, pid, tid);
	trace_out_text(&w->out, text);
	trace_out_text(&w->out, quoted);
	trace_out_text(&w->out, more);
	trace_out_text(&w->out, "}}");
}

static void ch_process(struct trace_writer *w, const struct trace_process *process)
{
	char *name = trace_quoted(process->name);

	put_name(w, "process_name", process->pid, 0, name, "");
	free(name);
}

/* The tid that a viewer sees: its own, if no other thread of this process had it. */
static uint32_t shown_tid(struct trace_writer *w, uint32_t id)
{
	const struct writer_thread *t = &w->thread[id];
	uint64_t key = idmap_pair(t->pid, t->tid);

	if (t->tid <= 0 || idmap_get(&w->tids, key))
		return OWN_TIDS + id * PLACE_LANES;
	idmap_put(&w->tids, key, id);
	return (uint32_t)t->tid;
}

static void ch_thread(struct trace_writer *w, uint32_t id, const struct trace_thread *thread)
{
	struct writer_thread *t = &w->thread[id];
	char more[80];

	if (!t->shown_tid)
		t->shown_tid = shown_tid(w, id);
	t->name = trace_quoted(thread->name);
	snprintf(more, sizeof(more), ",\"thread\":%" PRIu32 ",\"tid\":%" PRId32, id, t->tid);
	put_name(w, "thread_name", t->pid, t->shown_tid, t->name, more);
}

static uint32_t lane_tid(uint32_t id, const struct writer_thread *t, unsigned int lane)
{
	return lane ? OWN_TIDS + id * PLACE_LANES + lane : t->shown_tid;
}

static void declare_lane(struct trace_writer *w, uint32_t id, unsigned int lane)
{
	struct writer_thread *t = &w->thread[id];
	char more[80];

	snprintf(more, sizeof(more), ",\"thread\":%" PRIu32 ",\"tid\":%" PRId32 ",\"lane\":%u", id,
		 t->tid, lane);
	put_name(w, "thread_name", t->pid, lane_tid(id, t, lane), t->name, more);
	t->lanes_known = lane;
}

static char *piece(const struct trace_function *function, bool delay)
{
	const char *name = function->name ? function->name : "?";
	char *shown = must(malloc(strlen(name) + 16)), *quoted, *module, *text;
	const char *code = trace_code_name[function->code];
	bool apart = delay && function->code != TRACE_NATIVE;

	stpcpy(stpcpy(shown, delay ? "delay: " : ""), name);
	quoted = trace_quoted(shown);
	module = trace_quoted(function->module);
	if (asprintf(&text, ",\"name\":%s,\"cat\":\"%s\",\"args\":{\"module\":%s%s%s%s", quoted,
		     delay ? "delay" : code, module, apart ? ",\"" : "", apart ? code : "",
		     apart ? "\":true" : "") < 0)
		abort();
	free(module);
	free(quoted);
	free(shown);
	return text;
}

static void ch_function(struct trace_writer *w, uint32_t id, const struct trace_function *function)
{
	w->function[id].piece[TRACE_CALL] = piece(function, false);
	w->function[id].piece[TRACE_DELAY] = piece(function, true);
}

static char *put_true(char *at, uint64_t start, uint64_t dur)
{
	at = trace_put_number(stpcpy(at, ",\"start_ns\":"), start);
	return trace_put_number(stpcpy(at, ",\"dur_ns\":"), dur);
}

static void ch_span(struct trace_writer *w, const struct trace_span *span)
{
	struct writer_thread *t = &w->thread[span->thread];
	const struct writer_function *f = &w->function[span->function];
	uint64_t start = since_begin(w, span->start_ns);
	struct place place;
	char *at;

	place_span(&t->lanes, start, span_end(start, span->dur_ns), &place);
	if (place.lane > t->lanes_known)
		declare_lane(w, span->thread, place.lane);
	at = stpcpy(trace_out_room(&w->out, NUMBERS), ",\n{\"ph\":\"X\",\"ts\":");
	at = trace_put_decimal(at, place.start, 3);
	at = trace_put_decimal(stpcpy(at, ",\"dur\":"), place.end - place.start, 3);
	at = trace_put_number(stpcpy(at, ",\"pid\":"), (uint32_t)t->pid);
	at = trace_put_number(stpcpy(at, ",\"tid\":"), lane_tid(span->thread, t, place.lane));
	trace_out_took(&w->out, at);
	trace_out_put(&w->out, f->piece[span->kind], f->len[span->kind]);
	if (span->n_values || span->kernel || span->stack)
		trace_put_values_json(&w->out, span);
	at = trace_out_room(&w->out, NUMBERS);
	if (place.moved)
		at = put_true(at, start, span->dur_ns);
	trace_out_took(&w->out, stpcpy(at, "}}"));
}

const struct trace_encoder trace_chrome = {
	.begin = ch_begin,
	.process = ch_process,
	.thread = ch_thread,
	.function = ch_function,
	.span = ch_span,
	.end = ch_end,
};
