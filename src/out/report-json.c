/* SPDX-License-Identifier: MIT */
/* The document of `sbinject report --json`: sbinject.trace-report/1. */
#include "report.h"

#include <stdlib.h>
#include "report-cuda.h"
#include "report-locks.h"
#include "src/base/json.h"
#include "trace/write.h"

/* A number that JSON's readers may hold as a double all the same: times of a clock, not ids. */
static json_t *number(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *since(const struct sum *sum, uint64_t ns)
{
	return number(ns - sum->begin_ns);
}

static json_t *quantile(const struct sum *sum, const struct sum_times *times, double q)
{
	double ns = sum_quantile(sum, times, q);

	return ns < 0 ? json_null() : json_integer((json_int_t)ns);
}

static json_t *trace_json(const struct sum *sum, const char *file)
{
	const struct trace_reading *r = &sum->reading;
	json_t *o = json_must(json_object());

	json_put(o, "file", json_name(file));
	json_put(o, "format", json_string(trace_format_name(r->format)));
	json_put(o, "version", json_name(sum->version));
	json_put(o, "command", json_name(sum->command));
	json_put(o, "begin_ns", number(sum->begin_ns));
	json_put(o, "begin_unix_ns", number(sum->begin_unix_ns));
	json_put(o, "end_ns", r->ended ? since(sum, sum->end.end_ns) : json_null());
	json_put(o, "complete", json_boolean(r->ended && !r->cut && !*r->damage));
	json_put(o, "damage", *r->damage ? json_string(r->damage) : json_null());
	json_put(o, "bytes", number(r->bytes));
	json_put(o, "spans", number(r->spans));
	json_put(o, "lost", r->ended ? number(sum->end.lost) : json_null());
	json_put(o, "filtered", r->ended ? number(sum->end.filtered) : json_null());
	json_put(o, "skipped", number(r->skipped));
	json_put(o, "open", number(r->open));
	return o;
}

/* [[from, below, calls]], in ns; rows without calls are left out. */
static json_t *histogram_json(const struct sum *sum, const struct hist *hist)
{
	json_t *list = json_must(json_array());

	for (unsigned int i = 0; i < HIST_ROWS; i++) {
		uint64_t n = hist_in(&sum->pool, hist, i);
		json_t *row;

		if (!n)
			continue;
		row = json_must(json_array());
		json_add(row, number(hist_from(i)));
		json_add(row, number(hist_from(i + 1)));
		json_add(row, number(n));
		json_add(list, row);
	}
	return list;
}

static json_t *times_json(const struct sum *sum, const struct sum_function *f, enum trace_kind kind)
{
	const struct sum_times *t = f->of[kind];
	json_t *o = json_must(json_object());

	json_put(o, "name", json_name(f->name));
	json_put(o, "module", json_name(f->module));
	json_put(o, "kind", json_string(kind == TRACE_DELAY ? "delay" : trace_code_name[f->code]));
	json_put(o, "calls", number(t->n));
	json_put(o, "total_ns", number(t->total_ns));
	json_put(o, "own_ns", number(t->own_ns));
	json_put(o, "min_ns", number(t->min_ns));
	json_put(o, "p50_ns", quantile(sum, t, 0.5));
	json_put(o, "p90_ns", quantile(sum, t, 0.9));
	json_put(o, "p99_ns", quantile(sum, t, 0.99));
	json_put(o, "max_ns", number(t->max_ns));
	if (sum->options.histogram)
		json_put(o, "histogram",
			 t->hist.incomplete ? json_null() : histogram_json(sum, &t->hist));
	return o;
}

static json_t *functions_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < sum->n_functions; i++)
		for (int kind = 0; kind < 2; kind++)
			if (sum->function[i].of[kind])
				json_add(list,
					 times_json(sum, &sum->function[i], (enum trace_kind)kind));
	return list;
}

static json_t *processes_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < sum->n_processes; i++) {
		const struct sum_process *p = &sum->process[i];
		json_t *o;

		if (!p->spans)
			continue;
		o = json_must(json_object());
		json_put(o, "pid", json_integer(p->pid));
		json_put(o, "name", json_name(p->name));
		json_put(o, "threads", number(p->threads));
		json_put(o, "spans", number(p->spans));
		json_put(o, "in_calls_ns", number(p->in_calls_ns));
		json_put(o, "off_cpu_ns", p->off_cpu_ns ? number(p->off_cpu_ns) : json_null());
		json_add(list, o);
	}
	return list;
}

static void put_thread(json_t *o, const struct sum_thread *t)
{
	json_put(o, "pid", json_integer(t->pid));
	json_put(o, "tid", t->tid ? json_integer(t->tid) : json_null());
	json_put(o, "thread", json_name(t->name));
}

static json_t *threads_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < sum->n_threads; i++) {
		const struct sum_thread *t = &sum->thread[i];
		json_t *o;

		if (!t->spans)
			continue;
		o = json_must(json_object());
		put_thread(o, t);
		json_put(o, "spans", number(t->spans));
		json_put(o, "in_calls_ns", number(t->in_calls_ns));
		json_put(o, "off_cpu_ns", t->off_cpu_ns ? number(t->off_cpu_ns) : json_null());
		json_put(o, "first_ns", since(sum, t->first_ns));
		json_put(o, "last_ns", since(sum, t->last_ns));
		json_add(list, o);
	}
	return list;
}

static void put_function(json_t *o, const char *key, const struct sum *sum, uint32_t id,
			 enum trace_kind kind)
{
	char *frame = id ? out_report_frame(sum, id * 2 + (kind == TRACE_DELAY)) : NULL;

	json_put(o, key, json_name(frame));
	free(frame);
}

static json_t *value_json(const struct trace_value *v)
{
	char text[VALUE_TEXT_SIZE];

	if (!v->known)
		return json_null();
	if (v->type == VALUE_STR)
		return json_name(v->text);
	if (v->type == VALUE_BOOL)
		return json_boolean(v->value);
	if (v->type == VALUE_PTR || (!value_signed(v->type) && v->value > INT64_MAX))
		return json_must(json_string(value_text(v->type, v->value, text, sizeof(text))));
	return json_must(json_integer((json_int_t)v->value));
}

static json_t *values_json(const struct sum_slow *slow)
{
	json_t *o = json_must(json_object());

	for (uint32_t i = 0; i < slow->span.n_values; i++)
		json_put(o, slow->value[i].name, value_json(&slow->value[i]));
	return o;
}

static json_t *stack_json(const struct trace_stack *stack)
{
	json_t *list = json_must(json_array());

	for (uint32_t i = 0; i < stack->n; i++)
		json_add(list, json_name(stack->frame[i]));
	return list;
}

static json_t *slowest_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < sum->n_slow; i++) {
		const struct sum_slow *slow = &sum->slow[i];
		json_t *o = json_must(json_object());

		put_function(o, "name", sum, slow->span.function, slow->span.kind);
		put_function(o, "caller", sum, slow->caller, slow->caller_kind);
		json_put(o, "start_ns", since(sum, slow->span.start_ns));
		json_put(o, "dur_ns", number(slow->span.dur_ns));
		json_put(o, "own_ns", number(slow->own_ns));
		put_thread(o, &sum->thread[slow->span.thread - 1]);
		if (slow->span.n_values)
			json_put(o, "values", values_json(slow));
		if (slow->stack)
			json_put(o, "stack", stack_json(slow->stack));
		if (slow->stack && slow->stack->end)
			json_put(o, "stack_end", json_name(slow->stack->end));
		json_add(list, o);
	}
	return list;
}

static json_t *gaps_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < sum->n_gaps; i++) {
		json_t *o = json_must(json_object());

		json_put(o, "start_ns", since(sum, sum->gap[i].start_ns));
		json_put(o, "dur_ns", number(sum->gap[i].dur_ns));
		put_thread(o, &sum->thread[sum->gap[i].thread - 1]);
		json_add(list, o);
	}
	return list;
}

char *out_report_json(const struct sum *sum, const char *file)
{
	json_t *doc = json_must(json_object()), *cuda = out_report_cuda_json(sum);
	char *text;

	json_put(doc, "schema", json_string("sbinject.trace-report/1"));
	json_put(doc, "version", json_string(SB_VERSION));
	json_put(doc, "trace", trace_json(sum, file));
	json_put(doc, "spans", number(sum->spans));
	json_put(doc, "left_out", number(sum->filtered));
	json_put(doc, "crossing", number(sum->crossing));
	json_put(doc, "estimated", number(sum->guessed));
	json_put(doc, "functions", functions_json(sum));
	json_put(doc, "processes", processes_json(sum));
	json_put(doc, "threads", threads_json(sum));
	if (cuda)
		json_put(doc, "cuda", cuda);
	out_report_locks_json(doc, sum);
	if (sum->options.slowest)
		json_put(doc, "slowest", slowest_json(sum));
	if (sum->options.gaps)
		json_put(doc, "gaps", gaps_json(sum));
	text = json_document(doc, true);
	json_decref(doc);
	return text;
}
