/* SPDX-License-Identifier: MIT */
#include "evidence.h"

#include <stdlib.h>
#include <string.h>
#include "kind.h"

json_t *evidence_values_json(const struct evidence_values *values, const bool *unknown)
{
	json_t *object = json_must(json_object());

	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		json_put(object, evidence_kinds[i].name,
			 unknown && unknown[i] ? json_must(json_null()) :
						 kind_u64_new(values->of[i]));
	return object;
}

static json_t *stream_json(const struct result_stream *stream)
{
	json_t *o;

	if (!stream->asked)
		return json_must(json_null());
	o = json_must(json_object());
	json_put(o, "waits", kind_u64_new(stream->waits));
	json_put(o, "waits_lost", kind_u64_new(stream->lost));
	json_put(o, "lines_unwritten", kind_u64_new(stream->unwritten));
	json_put(o, "agrees", json_boolean(stream->agrees));
	return o;
}

_Static_assert((int)MACHINE_COUNTERS <= (int)RESULT_ROWS, "a row for each");

_Static_assert((int)CGROUP_COUNTERS <= (int)RESULT_ROWS && (int)MEMORY_ROWS <= (int)RESULT_ROWS,
	       "a row for each");

json_t *evidence_cgroup_json(const struct result_cgroup *cgroup)
{
	json_t *object = rows_json(&cgroup->rows, cgroup_names, CGROUP_COUNTERS);

	if (cgroup->rows.there)
		json_put(object, "path", json_name(cgroup->path));
	return object;
}

/* end NULL: it is not over. */
json_t *evidence_memory_json(const struct result_rows *begin, const struct result_rows *end)
{
	json_t *object;

	if (!begin->there)
		return json_must(json_null());
	object = json_must(json_object());
	json_put(object, "begin", rows_json(begin, memory_names, MEMORY_ROWS));
	json_put(object, "end",
		 end ? rows_json(end, memory_names, MEMORY_ROWS) : json_must(json_null()));
	return object;
}

static bool read_memory(const json_t *object, struct result_rows memory[2])
{
	return rows_read(json_object_get(object, "begin"), memory_names, MEMORY_ROWS, &memory[0]) &&
	       rows_read(json_object_get(object, "end"), memory_names, MEMORY_ROWS, &memory[1]);
}

static bool read_cgroup(const json_t *object, struct result_cgroup *cgroup)
{
	cgroup->path = json_name_of(object, "path");
	return rows_read(object, cgroup_names, CGROUP_COUNTERS, &cgroup->rows);
}

/* Without counters of the processor where they are another thread's. */
static json_t *thread_json(const struct result_evidence_thread *t, const bool *unknown)
{
	bool own[EVIDENCE_COUNTERS];

	memcpy(own, unknown, sizeof(own));
	for (int i = EVIDENCE_CYCLES; !t->hardware && i <= EVIDENCE_BRANCH_MISSES; i++)
		own[i] = true;
	return evidence_values_json(&t->values, own);
}

json_t *evidence_json(const struct result_evidence *e)
{
	json_t *object, *list;

	if (!e->source)
		return json_must(json_null());
	object = json_must(json_object());
	list = json_must(json_array());
	json_put(object, "source", json_name(e->source));
	json_put(object, "limit", json_name(e->limit));
	json_put(object, "remedy", json_name(e->remedy));
	json_put(object, "time_s", json_real(e->time_s));
	json_put(object, "threads_lost", kind_u64_new(e->lost));
	json_put(object, "sample", json_integer(e->sample));
	json_put(object, "counters", evidence_values_json(&e->sum, e->unknown));
	json_put(object, "machine", rows_json(&e->machine, machine_names, MACHINE_COUNTERS));
	json_put(object, "cgroup", evidence_cgroup_json(&e->cgroup));
	json_put(object, "hardware", hardware_json(&e->hardware));
	json_put(object, "process_memory", evidence_memory_json(&e->memory[0], &e->memory[1]));
	json_put(object, "events", stream_json(&e->stream));
	for (size_t i = 0; i < e->n_threads; i++) {
		const struct result_evidence_thread *t = &e->thread[i];
		json_t *o = json_must(json_object());

		json_put(o, "pid", json_integer(t->pid));
		json_put(o, "tid", json_integer(t->tid));
		json_put(o, "name", json_name(t->name));
		json_put(o, "counters", thread_json(t, e->unknown));
		json_add(list, o);
	}
	json_put(object, "threads", list);
	return object;
}

/* unknown: receives what is null; NULL: not of interest. */
static bool read_values(const json_t *object, struct evidence_values *values, bool *unknown)
{
	for (int i = 0; i < EVIDENCE_COUNTERS; i++) {
		const json_t *value = json_object_get(object, evidence_kinds[i].name);

		if (unknown) /* also one that a former version did not have */
			unknown[i] = !value || json_is_null(value);
		if (value && !json_is_null(value) && !kind_u64_read(value, &values->of[i]))
			return false;
	}
	return true;
}

static bool read_threads(const json_t *list, struct result_evidence *e)
{
	const json_t *o;
	size_t i;

	if (!json_is_array(list))
		return false;
	e->thread = must_calloc(json_array_size(list), sizeof(*e->thread));
	e->n_threads = json_array_size(list);
	json_array_foreach((json_t *)list, i, o)
	{
		struct result_evidence_thread *t = &e->thread[i];
		bool unknown[EVIDENCE_COUNTERS];

		t->name = json_name_of(o, "name");
		if (!kind_pid_read(json_object_get(o, "pid"), &t->pid) ||
		    !kind_pid_read(json_object_get(o, "tid"), &t->tid) ||
		    !read_values(json_object_get(o, "counters"), &t->values, unknown))
			return false;
		for (int c = EVIDENCE_CYCLES; c <= EVIDENCE_BRANCH_MISSES; c++)
			t->hardware |= !unknown[c];
	}
	return true;
}

/* None of a former version. */
static bool read_stream(const json_t *o, struct result_stream *stream)
{
	if (!json_is_object(o))
		return true;
	stream->asked = true;
	stream->agrees = json_is_true(json_object_get(o, "agrees"));
	return kind_u64_read(json_object_get(o, "waits"), &stream->waits) &&
	       kind_u64_read(json_object_get(o, "waits_lost"), &stream->lost) &&
	       kind_u64_read(json_object_get(o, "lines_unwritten"), &stream->unwritten);
}

const char *evidence_read(const json_t *value, struct result_evidence *e)
{
	e->source = json_name_of(value, "source");
	e->limit = json_name_of(value, "limit");
	e->remedy = json_name_of(value, "remedy");
	e->time_s = json_number_value(json_object_get(value, "time_s"));
	e->sample = (unsigned int)json_integer_value(json_object_get(value, "sample"));
	e->sample = e->sample ? e->sample : 1; /* of a former version */
	if (!e->source || !kind_u64_read(json_object_get(value, "threads_lost"), &e->lost) ||
	    !read_values(json_object_get(value, "counters"), &e->sum, e->unknown) ||
	    !rows_read(json_object_get(value, "machine"), machine_names, MACHINE_COUNTERS,
		       &e->machine) ||
	    !read_cgroup(json_object_get(value, "cgroup"), &e->cgroup) ||
	    !hardware_read_json(json_object_get(value, "hardware"), &e->hardware) ||
	    !read_memory(json_object_get(value, "process_memory"), e->memory) ||
	    !read_stream(json_object_get(value, "events"), &e->stream) ||
	    !read_threads(json_object_get(value, "threads"), e))
		return "the counters of the evidence";
	return NULL;
}
