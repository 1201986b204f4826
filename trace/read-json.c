/* SPDX-License-Identifier: MIT */
/*
 * Chrome's traces and lines of JSON. The file is taken apart into objects here, with a bound on
 * their size; each is parsed by jansson and let go.
 */
#include "read-priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "callstack.h"
#include "open.h"
#include "src/base/json.h"

enum { OBJECT_MAX = 1 << 20 };

struct json {
	struct reader *r;
	struct open_slices *open; /* of traces of others */
};

/* ---- values ---- */

static const char *plain(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key, uint64_t otherwise)
{
	const json_t *value = json_object_get(object, key);
	json_int_t n = json_integer_value(value);

	return json_is_integer(value) && n >= 0 ? (uint64_t)n : otherwise;
}

/* A time in ns; false: none, or none that a clock gives. */
static bool ns_of(const json_t *object, const char *key, double unit, uint64_t *ns)
{
	const json_t *value = json_object_get(object, key);
	long double n = json_is_integer(value) ? (long double)json_integer_value(value) :
						 (long double)json_real_value(value);

	n = roundl(n * unit);
	if (!json_is_number(value) || !(n >= 0 && n < 9e18L))
		return false;
	*ns = (uint64_t)n;
	return true;
}

/* A pid or tid; false: it is not one. */
static bool id_of(const json_t *object, const char *key, int32_t *id)
{
	const json_t *value = json_object_get(object, key);
	json_int_t n = json_integer_value(value);

	*id = (int32_t)n;
	return json_is_integer(value) && n >= 0 && n <= INT32_MAX;
}

/* ---- what is declared ---- */

static int take_about(struct json *j, const json_t *args)
{
	char *version = json_name_of(args, "version"), *command = json_name_of(args, "command");
	struct trace_about about = { version, command, number_of(args, "begin_ns", 0),
				     number_of(args, "begin_unix_ns", 0) };
	int ret;

	j->r->reading->ours = true;
	ret = decl_about(j->r, &about);
	free(version);
	free(command);
	return ret;
}

static int take_end(struct json *j, const json_t *args, uint64_t ns)
{
	return decl_end(
		j->r, &(struct trace_end){ number_of(args, "spans", 0), number_of(args, "lost", 0),
					   number_of(args, "filtered", 0), j->r->begin_ns + ns });
}

/* What tells a thread of ours apart is its number in the file; one of others', its tid. */
static uint64_t thread_key(const json_t *args, int32_t tid)
{
	return number_of(args, "thread", (uint64_t)1 << 32 | (uint32_t)tid);
}

/* shown: by its tid events name it (Chrome). A further lane is another name of its thread. */
static int take_thread(struct json *j, const json_t *args, const json_t *name_in, int32_t pid,
		       int32_t shown)
{
	char *name = json_name_of(name_in, "name");
	int32_t tid = shown;
	uint32_t id;
	int ret;

	if (json_object_get(args, "tid") && !id_of(args, "tid", &tid))
		tid = 0;
	ret = decl_thread(j->r, pid, thread_key(args, shown), tid, name, true, &id);
	if (ret == 0 && j->open)
		ret = open_alias(j->open, pid, shown, id);
	free(name);
	return ret;
}

static int take_meta(struct json *j, const json_t *object, const char *kind, const json_t *args,
		     const json_t *name_in)
{
	int32_t pid = 0, tid = 0;
	uint64_t ns = 0;
	char *name;
	int ret;

	id_of(object, "tid", &tid);
	if (!strcmp(kind, "trace") || !strcmp(kind, "sbinject_trace"))
		return take_about(j, args);
	if (!strcmp(kind, "end")) {
		ns_of(object, "ts", 1e9, &ns);
		return take_end(j, args, ns);
	}
	if (!strcmp(kind, "sbinject_end")) {
		ns_of(object, "ts", 1e3, &ns);
		return take_end(j, args, ns);
	}
	if (!id_of(object, "pid", &pid))
		return 0;
	if (!strcmp(kind, "thread") || !strcmp(kind, "thread_name"))
		return take_thread(j, args, name_in, pid, tid);
	if (strcmp(kind, "process") && strcmp(kind, "process_name"))
		return 0;
	name = json_name_of(name_in, "name");
	ret = decl_process(j->r, pid, name, true);
	free(name);
	return ret;
}

/* ---- values ---- */

/* As long as the object is there. */
static void take_text(const char *text, struct trace_value *to)
{
	to->type = VALUE_STR;
	to->value = 0;
	to->text = text;
}

/* False: it is no value that write.h writes. */
static bool value_of(const json_t *from, struct trace_value *to)
{
	const char *text = json_string_value(from);
	char *end;

	to->known = !json_is_null(from);
	if (json_is_null(from))
		return true;
	if (json_is_boolean(from)) {
		to->type = VALUE_BOOL;
		to->value = json_is_true(from);
	} else if (json_is_integer(from)) {
		to->type = VALUE_I64;
		to->value = (uint64_t)json_integer_value(from);
	} else if (text && (*text >= '0' && *text <= '9')) {
		to->type = text[1] == 'x' ? VALUE_PTR : VALUE_U64;
		to->value = strtoull(text, &end, text[1] == 'x' ? 16 : 10);
		if (*end || (to->type == VALUE_U64 && to->value <= INT64_MAX))
			take_text(text, to);
	} else if (text) {
		take_text(text, to);
	} else {
		return false;
	}
	return true;
}

static void take_values(const json_t *args, struct trace_value *value, struct trace_span *span)
{
	const char *name;
	json_t *member;

	json_object_foreach((json_t *)args, name, member)
	{
		struct trace_value v = { 0 };

		if (value_of(member, &v))
			decl_value(span, value, name, &v);
	}
}

/* ---- spans ---- */

static int take_function(struct json *j, const json_t *object, const char *kind, const json_t *args,
			 struct trace_span *span)
{
	char *name = json_name_of(object, "name"), *module = json_name_of(args, "module");
	const char *bare = name ? name : "?";
	bool delay = j->r->reading->ours && !strcmp(kind, "delay");
	enum trace_code code = TRACE_NATIVE;
	const char *const python = trace_code_name[TRACE_PYTHON];
	const char *const kernel = trace_code_name[TRACE_KERNEL];
	int ret;

	if (delay && j->r->reading->format == TRACE_CHROME && !strncmp(bare, "delay: ", 7))
		bare += 7;
	if (delay ? json_is_true(json_object_get(args, python)) : !strcmp(kind, python))
		code = TRACE_PYTHON;
	/* In traces of others it may be what runs on a device. */
	if (j->r->reading->ours &&
	    (delay ? json_is_true(json_object_get(args, kernel)) : !strcmp(kind, kernel)))
		code = TRACE_KERNEL;
	if (j->r->reading->ours && !delay && !strcmp(kind, trace_code_name[TRACE_DEVICE]))
		code = TRACE_DEVICE;
	span->kind = delay ? TRACE_DELAY : TRACE_CALL;
	ret = decl_function(j->r, code, bare, module, &span->function);
	free(name);
	free(module);
	return ret;
}

static int skip(struct json *j)
{
	j->r->reading->skipped++;
	return 0;
}

static void take_stack(const json_t *args, struct callstack *to)
{
	const json_t *frames = json_object_get(args, TRACE_STACK);

	for (size_t i = 0; i < json_array_size(frames); i++) {
		const char *text = json_string_value(json_array_get(frames, i));

		callstack_add(to, text ? json_bytes(text) : NULL);
	}
	callstack_end(to, json_name_of(args, TRACE_STACK_END));
}

static int take_ours(struct json *j, const json_t *args, struct trace_span *span)
{
	char *kernel = json_name_of(args, TRACE_KERNEL_NAME);
	struct callstack stack = { 0 };
	int ret;

	span->kernel = kernel;
	take_stack(args, &stack);
	span->stack = callstack_get(&stack);
	ret = decl_span(j->r, span);
	callstack_clear(&stack);
	free(kernel);
	return ret;
}

/* A line of ours. */
static int take_line(struct json *j, const json_t *object)
{
	const char *phase = plain(object, "phase"), *type = plain(object, "type");
	const json_t *args = json_object_get(object, "args");
	struct trace_value value[VALUE_MAX];
	struct trace_span span = { 0 };
	int32_t pid, tid;
	int ret;

	if (!strcmp(phase, "M"))
		return take_meta(j, object, type, args, object);
	if (strcmp(phase, "X") || !id_of(object, "pid", &pid) || !id_of(object, "tid", &tid) ||
	    !ns_of(object, "ts", 1e9, &span.start_ns) ||
	    !ns_of(object, "dur_us", 1e3, &span.dur_ns))
		return skip(j);
	ret = decl_thread(j->r, pid, thread_key(args, tid), tid, NULL, false, &span.thread);
	if (ret == 0)
		ret = take_function(j, object, type, args, &span);
	span.start_ns += j->r->begin_ns;
	take_values(args, value, &span);
	return ret == 0 ? take_ours(j, args, &span) : ret;
}

/* Kept apart from take_line(): Chrome's threads are found by the tid that is shown. */
static int take_slice(struct json *j, const json_t *object, char phase)
{
	const json_t *args = json_object_get(object, "args");
	struct trace_value value[VALUE_MAX];
	struct trace_span span = { 0 };
	int32_t pid, tid;
	int ret;

	if (!id_of(object, "pid", &pid) || !id_of(object, "tid", &tid) ||
	    !ns_of(object, "ts", 1e3, &span.start_ns) ||
	    (phase == 'X' && !ns_of(object, "dur", 1e3, &span.dur_ns)))
		return skip(j);
	if (j->r->reading->ours) {
		span.start_ns = number_of(args, "start_ns", span.start_ns);
		span.dur_ns = number_of(args, "dur_ns", span.dur_ns);
		if (phase == 'X') /* which is handed on at once: value is not kept */
			take_values(args, value, &span);
	}
	span.start_ns += j->r->begin_ns;
	span.thread = open_thread(j->open, pid, tid);
	ret = span.thread ?
		      0 :
		      decl_thread(j->r, pid, thread_key(NULL, tid), tid, NULL, false, &span.thread);
	if (ret == 0 && phase != 'E')
		ret = take_function(j, object, plain(object, "cat"), args, &span);
	if (ret < 0)
		return ret;
	if (j->r->reading->ours && phase == 'X') /* in the order of ends, as they were written */
		return take_ours(j, args, &span);
	return phase == 'X' ? open_complete(j->open, &span) :
	       phase == 'B' ? open_begin(j->open, &span) :
			      open_end(j->open, &span);
}

static int take_event(struct json *j, const json_t *object)
{
	const char *phase = plain(object, "ph");
	const json_t *args = json_object_get(object, "args");

	if (!strcmp(phase, "M"))
		return take_meta(j, object, plain(object, "name"), args, args);
	if (!strcmp(phase, "X") || !strcmp(phase, "B") || !strcmp(phase, "E"))
		return take_slice(j, object, *phase);
	return skip(j);
}

/* ---- objects of the file ---- */

static int take_object(struct json *j, const char *text, size_t n,
		       int (*take)(struct json *j, const json_t *object))
{
	json_t *object = json_loadb(text, n, 0, NULL);
	int ret = json_is_object(object) ? take(j, object) : skip(j);

	json_decref(object);
	return ret;
}

/* One that is longer than OBJECT_MAX is dropped up to its end. */
static void drop_line(struct json *j)
{
	struct input *in = &j->r->in;
	char *end;

	skip(j);
	do {
		end = memchr(in->buf + in->at, '\n', in->n - in->at);
		in->at = end ? (size_t)(end + 1 - in->buf) : in->n;
	} while (!end && input_more(in));
}

static bool is_blank(const char *at, const char *end)
{
	while (at < end && strchr(" \t\r", *at))
		at++;
	return at == end;
}

/* A last line without a newline may be whole all the same. */
static int take_rest(struct json *j)
{
	struct input *in = &j->r->in;
	json_t *object = json_loadb(in->buf + in->at, in->n - in->at, 0, NULL);
	int ret = 0;

	if (json_is_object(object)) {
		ret = take_line(j, object);
		in->at = in->n;
	}
	json_decref(object);
	j->r->reading->cut |= in->at < in->n;
	return ret;
}

int read_jsonl(struct reader *r)
{
	struct json j = { .r = r };
	struct input *in = &r->in;
	size_t seen = 0;
	int ret = 0;

	while (ret == 0) {
		char *line = in->buf + in->at, *end;
		size_t left = in->n - in->at;

		end = memchr(line + seen, '\n', left - seen);
		if (!end && left > OBJECT_MAX) {
			drop_line(&j);
			seen = 0;
			continue;
		}
		seen = left;
		if (!end && input_more(in))
			continue;
		if (!end)
			break;
		seen = 0;
		if (!is_blank(line, end))
			ret = take_object(&j, line, (size_t)(end - line), take_line);
		in->at += (size_t)(end + 1 - line);
	}
	return ret == 0 ? take_rest(&j) : ret;
}

/* Where an object ends: a state that goes on where more was read. */
struct scan {
	size_t at; /* from the object's begin */
	unsigned int depth;
	bool text, escaped;
};

/* The object's length, or 0: it goes on. */
static size_t scan_object(struct scan *scan, const char *object, size_t n)
{
	for (; scan->at < n; scan->at++) {
		char c = object[scan->at];

		if (scan->escaped)
			scan->escaped = false;
		else if (scan->text && c == '\\')
			scan->escaped = true;
		else if (c == '"')
			scan->text = !scan->text;
		else if (!scan->text && (c == '{' || c == '['))
			scan->depth++;
		else if (!scan->text && (c == '}' || c == ']') && !--scan->depth)
			return scan->at + 1;
	}
	return 0;
}

/* Drops what is held of an object that is too long, and goes on in its middle. */
static void drop_part(struct json *j, struct scan *scan, bool *dropped)
{
	if (!*dropped)
		skip(j);
	*dropped = true;
	j->r->in.at = j->r->in.n;
	scan->at = 0;
}

/* The object that begins in->at. 1: the file ends within it. */
static int next_object(struct json *j)
{
	struct input *in = &j->r->in;
	struct scan scan = { 0 };
	bool dropped = false;
	size_t n;
	int ret;

	while (!(n = scan_object(&scan, in->buf + in->at, in->n - in->at))) {
		if (in->n - in->at > OBJECT_MAX)
			drop_part(j, &scan, &dropped);
		if (!input_more(in))
			return 1;
	}
	ret = dropped ? 0 : take_object(j, in->buf + in->at, n, take_event);
	in->at += n;
	return ret;
}

/* Goes to the array of events: false, there is none. */
static bool enter_array(struct input *in)
{
	static const char key[] = "\"traceEvents\"";
	char *key_at = memmem(in->buf, in->n, key, strlen(key)), *array = NULL;
	char *first = memchr(in->buf, '[', in->n), *object = memchr(in->buf, '{', in->n);

	if (object && (!first || object < first))
		array = key_at ? memchr(key_at, '[', in->n - (size_t)(key_at - in->buf)) : NULL;
	else
		array = first;
	if (array)
		in->at = (size_t)(array + 1 - in->buf);
	return array;
}

static int read_events(struct json *j)
{
	struct input *in = &j->r->in;
	int ret = 0;

	while (ret == 0) {
		if (in->at == in->n && !input_more(in)) {
			j->r->reading->cut |= j->r->reading->ours;
			break;
		}
		if (in->buf[in->at] == '{')
			ret = next_object(j);
		else if (in->buf[in->at++] == ']')
			break;
	}
	j->r->reading->cut |= ret == 1;
	return ret < 0 ? ret : 0;
}

int read_chrome(struct reader *r)
{
	struct json j = { .r = r, .open = open_new(r) };
	int ret = 0;

	if (enter_array(&r->in))
		ret = read_events(&j);
	if (ret == 0)
		ret = open_rest(j.open);
	open_free(j.open);
	return ret;
}
