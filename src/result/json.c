/* SPDX-License-Identifier: MIT */
/*
 * The document of a run: tables of fields, from the site up to the whole, and the walks over them.
 * An array's count is set before its items are read, so that result_free() finds everything that an
 * incomplete document left behind.
 */
#include "evidence.h"
#include "kind.h"
#include "locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"

#define SCHEMA "sbinject.run/1"

/* Shapes */

static void shape_fill(json_t *object, const struct shape *shape, const char *base,
		       const struct result *res)
{
	char key[64];

	for (size_t i = 0; i < shape->n; i++) {
		const struct field *field = &shape->field[i];
		json_t *value = must(field->kind->put(field, base, res));
		bool why = json_is_null(value) && field->unknown;

		if (json_is_null(value) && field->optional) {
			json_decref(value);
			continue;
		}
		json_put(object, field->name, value);
		snprintf(key, sizeof(key), "%s_reason", field->name);
		if (why)
			json_put(object, key, json_string(field->unknown));
	}
}

/* Records what is wrong with a value, unless a nested value has recorded it. */
static int get_failed(const char *name, const json_t *value, const char *wanted, struct sb_err *err)
{
	if (!*wanted)
		err_prefix(err, "%s", name);
	else if (!value)
		err_set(err, SB_EFILE, "%s: is missing", name);
	else
		err_set(err, SB_EFILE, "%s: is not %s", name, wanted);
	return -SB_EFILE;
}

static int shape_read(const json_t *object, const struct shape *shape, char *base,
		      const struct result *res, struct sb_err *err)
{
	for (size_t i = 0; i < shape->n; i++) {
		const struct field *field = &shape->field[i];
		const json_t *value = json_object_get(object, field->name);
		const char *wanted = !value && field->optional ? NULL :
				     value ? field->kind->get(field, base, value, res, err) :
					     "there";

		if (wanted)
			return get_failed(field->name, value, wanted, err);
	}
	return 0;
}

/* Arrays: of structs, of strings, of pids */

static size_t count_of(const struct field *field, const char *base)
{
	return *(const size_t *)(base + field->count_at);
}

static void *array_alloc(const struct field *field, char *base, const json_t *value, size_t size)
{
	size_t n = json_array_size(value);
	void *items = n ? must_calloc(n, size) : NULL;

	*(void **)(base + field->at) = items;
	*(size_t *)(base + field->count_at) = n;
	return items;
}

static json_t *structs_put(KIND_PUT_ARGS)
{
	const char *item = *(char *const *)(base + field->at);
	json_t *array = json_must(json_array());

	for (size_t i = 0; i < count_of(field, base); i++, item += field->shape->size) {
		json_t *object = json_must(json_object());

		shape_fill(object, field->shape, item, res);
		json_add(array, object);
	}
	return array;
}

static const char *structs_get(KIND_GET_ARGS)
{
	char *item, nth[32];

	if (!json_is_array(value))
		return "an array";
	item = array_alloc(field, base, value, field->shape->size);
	for (size_t i = 0; i < json_array_size(value); i++, item += field->shape->size) {
		if (!shape_read(json_array_get(value, i), field->shape, item, res, err))
			continue;
		snprintf(nth, sizeof(nth), "%zu", i);
		err_prefix(err, "%s", nth);
		return "";
	}
	return NULL;
}

static json_t *strings_put(KIND_PUT_ARGS)
{
	char *const *s = *(char *const *const *)(base + field->at);
	json_t *array = json_must(json_array());

	for (size_t i = 0; i < count_of(field, base); i++)
		json_add(array, json_name(s[i]));
	return array;
}

static const char *strings_get(KIND_GET_ARGS)
{
	char **s;

	if (!json_is_array(value))
		return "an array of strings";
	s = array_alloc(field, base, value, sizeof(*s));
	for (size_t i = 0; i < json_array_size(value); i++) {
		s[i] = json_name_take(json_array_get(value, i));
		if (!s[i])
			return "an array of strings";
	}
	return NULL;
}

static json_t *pids_put(KIND_PUT_ARGS)
{
	const pid_t *pids = *(pid_t *const *)(base + field->at);
	json_t *array = json_must(json_array());

	for (size_t i = 0; i < count_of(field, base); i++)
		json_add(array, json_integer(pids[i]));
	return array;
}

static const char *pids_get(KIND_GET_ARGS)
{
	pid_t *pids;

	if (!json_is_array(value))
		return "an array of process ids";
	pids = array_alloc(field, base, value, sizeof(*pids));
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!kind_pid_read(json_array_get(value, i), &pids[i]))
			return "an array of process ids";
	return NULL;
}

/* Left out where there are none. */
static json_t *some_structs_put(KIND_PUT_ARGS)
{
	return count_of(field, base) ? structs_put(field, base, res) : json_must(json_null());
}

static const struct kind kind_structs = { structs_put, structs_get };
static const struct kind kind_some_structs = { some_structs_put, structs_get };
static const struct kind kind_strings = { strings_put, strings_get };
static const struct kind kind_pids = { pids_put, pids_get };

/* Tags are an object of strings; a key given twice keeps its last value. */

static json_t *tags_put(KIND_PUT_ARGS)
{
	const struct result_tag *tag = *(struct result_tag *const *)(base + field->at);
	json_t *object = json_must(json_object());

	for (size_t i = 0; i < count_of(field, base); i++) {
		char *key = json_text(tag[i].key ? tag[i].key : "");

		json_put(object, key, json_name(tag[i].value));
		free(key);
	}
	return object;
}

static const char *tags_get(KIND_GET_ARGS)
{
	struct result_tag *tag;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		return "an object";
	tag = must_calloc(json_object_size(value) + 1, sizeof(*tag));
	*(struct result_tag **)(base + field->at) = tag;
	*(size_t *)(base + field->count_at) = json_object_size(value);
	json_object_foreach((json_t *)value, key, item)
	{ /* the macro takes no const */
		tag->key = json_bytes(key);
		tag->value = json_name_take(item);
		if (!tag++->value && !json_is_null(item))
			return "an object of strings";
	}
	return NULL;
}

static const struct kind kind_tags = { tags_put, tags_get };

/* Values that are all known or all unknown. */

#define FIELD(type, member, kind_of, ...)                                                      \
	{                                                                                      \
		.name = #member, .kind = &kind_of, .at = offsetof(type, member), ##__VA_ARGS__ \
	}
#define ARRAY(type, key, kind_of, member, n_member, ...)                     \
	{                                                                    \
		.name = key, .kind = &kind_of, .at = offsetof(type, member), \
		.count_at = offsetof(type, n_member), ##__VA_ARGS__          \
	}
#define SHAPE(type, fields)                                                \
	{                                                                  \
		sizeof(type), fields, sizeof(fields) / sizeof((fields)[0]) \
	}

static const struct field given_fields[] = {
	{ .name = "mean", .kind = &kind_real, .at = offsetof(struct result_given, mean) },
	{ .name = "p50", .kind = &kind_u64, .at = offsetof(struct result_given, p50) },
	{ .name = "p99", .kind = &kind_u64, .at = offsetof(struct result_given, p99) },
	{ .name = "max", .kind = &kind_u64, .at = offsetof(struct result_given, max) },
	{ .name = "uncertainty",
	  .kind = &kind_real,
	  .at = offsetof(struct result_given, uncertainty),
	  .unknown = "it is not measured for such targets" },
};

static const struct field stop_fields[] = {
	{ .name = "attach", .kind = &kind_u64, .at = offsetof(struct result, stop_attach_us) },
	{ .name = "detach", .kind = &kind_u64, .at = offsetof(struct result, stop_detach_us) },
};

static const struct field gil_fields[] = {
	{ .name = "attach", .kind = &kind_u64, .at = offsetof(struct result, gil_attach_us) },
	{ .name = "detach", .kind = &kind_u64, .at = offsetof(struct result, gil_detach_us) },
};

static const struct shape given_shape = SHAPE(struct result_given, given_fields);
static const struct shape stop_shape = SHAPE(struct result, stop_fields);
static const struct shape gil_shape = SHAPE(struct result, gil_fields);

static json_t *known_put(const struct shape *shape, const char *base, bool known,
			 const char *reason)
{
	json_t *object = json_must(json_object());

	if (known)
		shape_fill(object, shape, base, NULL);
	for (size_t i = 0; !known && i < shape->n; i++)
		json_put(object, shape->field[i].name, json_null());
	if (!known && !*reason)
		reason = "not measured";
	if (*reason)
		json_put(object, "reason", json_name(reason));
	return object;
}

/* All of the fields, or a null for each of them. */
static const char *known_get(const struct shape *shape, char *base, const json_t *value,
			     bool *known, struct sb_err *err)
{
	size_t nulls = 0;

	for (size_t i = 0; i < shape->n; i++)
		nulls += json_is_null(json_object_get(value, shape->field[i].name));
	*known = nulls < shape->n;
	return *known && shape_read(value, shape, base, NULL, err) ? "" : NULL;
}

static json_t *given_put(KIND_PUT_ARGS)
{
	const struct result_given *given = (const void *)(base + field->at);

	return known_put(&given_shape, base + field->at, given->known, given->reason);
}

static const char *given_get(KIND_GET_ARGS)
{
	struct result_given *given = (void *)(base + field->at);
	char *reason = json_name_take(json_object_get(value, "reason"));
	size_t len = reason ? strlen(reason) : 0;

	if (len >= sizeof(given->reason)) /* never split a character */
		for (len = sizeof(given->reason) - 1; (reason[len] & 0xc0) == 0x80 && len; len--)
			;
	if (reason)
		memcpy(given->reason, reason, len);
	given->reason[len] = '\0';
	free(reason);
	return known_get(&given_shape, base + field->at, value, &given->known, err);
}

static json_t *stop_put(KIND_PUT_ARGS)
{
	return known_put(&stop_shape, base, ((const struct result *)base)->stop_known, "");
}

static const char *stop_get(KIND_GET_ARGS)
{
	return known_get(&stop_shape, base, value, &((struct result *)base)->stop_known, err);
}

/* Left out, as "gil" is, if no interpreter with a GIL was watched. */
static json_t *gil_put(KIND_PUT_ARGS)
{
	const struct result *run = (const void *)base;

	return run->gil ? known_put(&gil_shape, base, run->gil_known, "") : must(json_null());
}

static const char *gil_get(KIND_GET_ARGS)
{
	return known_get(&gil_shape, base, value, &((struct result *)base)->gil_known, err);
}

static const struct kind kind_given = { given_put, given_get };
static const struct kind kind_stop = { stop_put, stop_get };
static const struct kind kind_gil = { gil_put, gil_get };

/* Recorded calls. */

static const struct field trace_fields[] = {
	FIELD(struct result_trace, file, kind_string),
	FIELD(struct result_trace, calls, kind_u64),
	FIELD(struct result_trace, delays, kind_u64),
	FIELD(struct result_trace, lost, kind_u64),
	FIELD(struct result_trace, unseen, kind_u64),
	FIELD(struct result_trace, filtered, kind_u64),
	FIELD(struct result_trace, stacks, kind_u64, .optional = true),
	FIELD(struct result_trace, stacks_lost, kind_u64, .optional = true),
};
static const struct shape trace_shape = SHAPE(struct result_trace, trace_fields);

static json_t *trace_put(KIND_PUT_ARGS)
{
	const struct result_trace *trace = &((const struct result *)base)->trace;
	json_t *object;

	if (!trace->file)
		return json_must(json_null());
	object = json_must(json_object());
	shape_fill(object, &trace_shape, (const char *)trace, res);
	return object;
}

static const char *trace_get(KIND_GET_ARGS)
{
	return shape_read(value, &trace_shape, (char *)&((struct result *)base)->trace, res, err) ?
		       "the counts of recorded calls" :
		       NULL;
}

static const struct kind kind_trace = { trace_put, trace_get };

static json_t *evidence_put(KIND_PUT_ARGS)
{
	return evidence_json(&((const struct result *)base)->evidence);
}

static const char *evidence_get(KIND_GET_ARGS)
{
	return evidence_read(value, &((struct result *)base)->evidence);
}

static const struct kind kind_evidence = { evidence_put, evidence_get };

/* The counts of a process, one for each target of the run, in the order of the targets. */

#define COUNTS(type, member)                                                                     \
	{ .name = "delayed", .kind = &kind_u64, .at = offsetof(type, member delayed) },          \
		{ .name = "injected_ns",                                                         \
		  .kind = &kind_u64,                                                             \
		  .at = offsetof(type, member injected_ns) },                                    \
	{                                                                                        \
		.name = "overrun_ns", .kind = &kind_u64, .at = offsetof(type, member overrun_ns) \
	}

static const struct field counts_fields[] = {
	FIELD(struct result_counts, hits, kind_u64),
	COUNTS(struct result_counts, ),
};
static const struct shape counts_shape = SHAPE(struct result_counts, counts_fields);

static json_t *counts_put(KIND_PUT_ARGS)
{
	const struct result_counts *counts = *(struct result_counts *const *)(base + field->at);
	json_t *array = json_must(json_array());

	for (size_t i = 0; counts && i < res->n_targets; i++) {
		json_t *object = json_must(json_object());

		json_put(object, "spec", json_name(res->target[i].spec));
		shape_fill(object, &counts_shape, (const char *)&counts[i], res);
		json_add(array, object);
	}
	return array;
}

static const char *counts_get(KIND_GET_ARGS)
{
	size_t n = json_array_size(value);
	struct result_counts *counts;

	if (!json_is_array(value) || (n && n != res->n_targets))
		return "an array with one entry for each target";
	counts = n ? must_calloc(n, sizeof(*counts)) : NULL;
	*(struct result_counts **)(base + field->at) = counts;
	for (size_t i = 0; i < n; i++)
		if (shape_read(json_array_get(value, i), &counts_shape, (char *)&counts[i], res,
			       err))
			return "";
	return NULL;
}

static const struct kind kind_counts = { counts_put, counts_get };

/* The hits of a target: unknown if it was never hooked. */

static json_t *hits_put(KIND_PUT_ARGS)
{
	const struct result_target *target = (const void *)base;
	bool hooked = target->outcome == OUTCOME_DELAYED || target->outcome == OUTCOME_COUNTED ||
		      target->outcome == OUTCOME_NEVER_CALLED;

	return hooked || target->counts.hits ? kind_u64.put(field, base, res) : json_null();
}

static const char *hits_get(KIND_GET_ARGS)
{
	return json_is_null(value) ? NULL : kind_u64.get(field, base, value, res, err);
}

static const struct kind kind_hits = { hits_put, hits_get };

/* The hits of a function, if it has its own counter. */

static json_t *each_put(KIND_PUT_ARGS)
{
	const struct result_site *site = (const void *)base;

	return site->each ? kind_u64.put(field, base, res) : json_null();
}

static const char *each_get(KIND_GET_ARGS)
{
	((struct result_site *)base)->each = true;
	return kind_u64.get(field, base, value, res, err);
}

static const struct kind kind_each = { each_put, each_get };

/* The document */

static const struct field site_fields[] = {
	FIELD(struct result_site, module, kind_string),
	FIELD(struct result_site, build_id, kind_string, .unknown = "the module has none"),
	FIELD(struct result_site, symbol, kind_string),
	FIELD(struct result_site, name, kind_string),
	FIELD(struct result_site, address, kind_address, .unknown = "not mapped"),
	FIELD(struct result_site, size, kind_extent, .unknown = "the symbol has none"),
	FIELD(struct result_site, function, kind_address, .optional = true),
	FIELD(struct result_site, mechanism, kind_string, .unknown = "not hooked"),
	FIELD(struct result_site, file, kind_string, .optional = true),
	FIELD(struct result_site, line, kind_extent, .optional = true),
	ARRAY(struct result_site, "pids", kind_pids, pids, n_pids),
	FIELD(struct result_site, hits, kind_each, .optional = true),
	{ .name = "spans",
	  .kind = &kind_times,
	  .at = offsetof(struct result_site, times),
	  .optional = true },
	FIELD(struct result_site, untimed, kind_string, .optional = true),
};

static const struct field refused_fields[] = {
	FIELD(struct result_refused, module, kind_string),
	FIELD(struct result_refused, symbol, kind_string),
	FIELD(struct result_refused, name, kind_string),
	FIELD(struct result_refused, address, kind_address, .unknown = "not mapped"),
	FIELD(struct result_refused, reason, kind_string),
	ARRAY(struct result_refused, "pids", kind_pids, pids, n_pids),
};

static const struct shape site_shape = SHAPE(struct result_site, site_fields);
static const struct shape refused_shape = SHAPE(struct result_refused, refused_fields);

#define SPANS(member)                                                                \
	{                                                                            \
		.name = "span_" #member, .kind = &kind_extent,                       \
		.at = offsetof(struct result_target, spans.member), .optional = true \
	}

static const struct field target_fields[] = {
	FIELD(struct result_target, spec, kind_string),
	FIELD(struct result_target, pid, kind_limit, .optional = true),
	FIELD(struct result_target, delay_ns, kind_u64),
	FIELD(struct result_target, every, kind_u64),
	FIELD(struct result_target, at, kind_string, .optional = true),
	FIELD(struct result_target, timed, kind_flag, .optional = true),
	FIELD(struct result_target, preset, kind_string, .optional = true),
	FIELD(struct result_target, kind, kind_string, .optional = true),
	FIELD(struct result_target, listed, kind_flag, .optional = true),
	FIELD(struct result_target, outcome, kind_outcome),
	FIELD(struct result_target, reason, kind_string),
	FIELD(struct result_target, active_s, kind_real, .unknown = "not measured"),
	{ .name = "hits",
	  .kind = &kind_hits,
	  .at = offsetof(struct result_target, counts.hits),
	  .unknown = "never hooked" },
	COUNTS(struct result_target, counts.),
	{ .name = "given_ns", .kind = &kind_given, .at = offsetof(struct result_target, given) },
	SPANS(ns),
	SPANS(calls),
	SPANS(missed),
	{ .name = "spans",
	  .kind = &kind_times,
	  .at = offsetof(struct result_target, times),
	  .optional = true },
	ARRAY(struct result_target, "sites_untimed", kind_some_structs, untimed, n_untimed,
	      .shape = &refused_shape, .optional = true),
	ARRAY(struct result_target, "sites", kind_structs, site, n_sites, .shape = &site_shape),
	ARRAY(struct result_target, "sites_refused", kind_structs, refused, n_refused,
	      .shape = &refused_shape),
	FIELD(struct result_target, procs, kind_size),
};

static const struct field process_fields[] = {
	FIELD(struct result_process, pid, kind_pid),
	FIELD(struct result_process, generation, kind_uint),
	FIELD(struct result_process, began_ns, kind_u64, .optional = true),
	FIELD(struct result_process, ended_ns, kind_u64, .optional = true),
	FIELD(struct result_process, comm, kind_string, .unknown = "not read"),
	FIELD(struct result_process, exe, kind_string, .unknown = "not read"),
	{ .name = "targets", .kind = &kind_counts, .at = offsetof(struct result_process, counts) },
};

static const struct shape target_shape = SHAPE(struct result_target, target_fields);
static const struct shape process_shape = SHAPE(struct result_process, process_fields);

static const struct field run_fields[] = {
	FIELD(struct result, version, kind_string),
	ARRAY(struct result, "argv", kind_strings, argv, n_argv),
	FIELD(struct result, host, kind_string, .unknown = "not read"),
	ARRAY(struct result, "tags", kind_tags, tag, n_tags),
	FIELD(struct result, started, kind_time, .unknown = "nothing was started"),
	FIELD(struct result, ended, kind_time, .unknown = "has not ended"),
	FIELD(struct result, wall_s, kind_real, .unknown = "not measured"),
	FIELD(struct result, backend, kind_string, .unknown = "none was chosen"),
	FIELD(struct result, exit, kind_exit, .unknown = "has not ended"),
	FIELD(struct result, exit_reason, kind_string),
	/* Before the processes: these have counts for each target. */
	ARRAY(struct result, "targets", kind_structs, target, n_targets, .shape = &target_shape),
	ARRAY(struct result, "processes", kind_structs, process, n_processes,
	      .shape = &process_shape),
	FIELD(struct result, gil, kind_string, .optional = true),
	FIELD(struct result, lease_lapsed_hits, kind_u64),
	FIELD(struct result, doorbells_lost, kind_u64),
	FIELD(struct result, stalled_s, kind_real, .unknown = "this backend does not measure it"),
	FIELD(struct result, left_behind, kind_u64),
	{ .name = "stop_us", .kind = &kind_stop },
	{ .name = "gil_held_us", .kind = &kind_gil, .optional = true },
	{ .name = "trace", .kind = &kind_trace, .optional = true },
	{ .name = "evidence", .kind = &kind_evidence, .optional = true },
	ARRAY(struct result, "cuda", kind_figures, cuda, n_cuda, .optional = true),
	ARRAY(struct result, "warnings", kind_strings, warning, n_warnings),
};

static const struct shape run_shape = SHAPE(struct result, run_fields);

char *result_to_json(const struct result *res, bool indent)
{
	json_t *document = json_must(json_object());
	char *text;

	json_put(document, "schema", json_string(SCHEMA));
	shape_fill(document, &run_shape, (const char *)res, res);
	locks_put(document, res);
	text = json_document(document, indent);
	json_decref(document);
	return text;
}

static int read_document(const json_t *document, struct result *res, struct sb_err *err)
{
	const char *schema = json_string_value(json_object_get(document, "schema"));
	int rc;

	if (!schema || strcmp(schema, SCHEMA) != 0)
		return err_set(err, SB_EFILE, "not a document of schema " SCHEMA);
	rc = shape_read(document, &run_shape, (char *)res, res, err);
	locks_get(document, res);
	if (rc)
		err_prefix(err, "result document");
	return rc;
}

int result_from_json(const char *text, struct result **out, struct sb_err *err)
{
	json_error_t error;
	json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	char quoted[TEXT_QUOTE_SIZE];
	struct result *res;
	int rc;

	if (!document)
		return err_set(err, SB_EFILE, "result document, line %d: %s", error.line,
			       text_quote(error.text, quoted, sizeof(quoted)));
	res = result_new(0);
	rc = read_document(document, res, err);
	json_decref(document);
	if (rc)
		result_free(res);
	else
		*out = res;
	return rc;
}
