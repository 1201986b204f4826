/* SPDX-License-Identifier: MIT */
/* How long calls took, as JSON: {"calls": ..., "p50_ns": ..., "histogram": [[from, to, calls]]}. */
#include "times.h"
#include "kind.h"

#include <stdlib.h>
#include <string.h>

/* The figures of calls > 0: null where no call returned. */
static const struct figure {
	const char *name;
	size_t at;
} of_calls[] = {
	{ "min_ns", offsetof(struct result_times, min_ns) },
	{ "p50_ns", offsetof(struct result_times, p50_ns) },
	{ "p90_ns", offsetof(struct result_times, p90_ns) },
	{ "p99_ns", offsetof(struct result_times, p99_ns) },
	{ "max_ns", offsetof(struct result_times, max_ns) },
};

enum { FIGURES = sizeof(of_calls) / sizeof(*of_calls) };

static json_t *put_buckets(const struct result_times *times)
{
	json_t *array = json_must(json_array());

	for (size_t i = 0; i < times->n_buckets; i++) {
		const struct result_bucket *b = &times->bucket[i];

		json_add(array, json_pack("[o,o,o]", kind_u64_new(b->from_ns),
					  kind_u64_new(b->to_ns), kind_u64_new(b->calls)));
	}
	return array;
}

static json_t *put_value(const struct result_value *v)
{
	json_t *object = json_must(json_object());

	json_put(object, "name", json_must(json_string(v->name)));
	if (v->position)
		json_put(object, "argument", json_must(json_integer(v->position)));
	if (v->memory)
		json_put(object, "memory", json_must(json_true()));
	if (v->memory || v->offset)
		json_put(object, "offset", json_must(json_integer(v->offset)));
	json_put(object, "type", json_must(json_string(value_type_name(v->type))));
	if (!v->summed)
		return object;
	json_put(object, "sum", v->sum_known ? kind_u64_new(v->sum) : json_null());
	if (!v->sum_known)
		json_put(object, "sum_reason",
			 json_must(json_string("larger than 64 bits can hold")));
	json_put(object, "sum_calls", kind_u64_new(v->sum_calls));
	return object;
}

static json_t *put_values(const struct result_times *times)
{
	json_t *array = json_must(json_array());

	for (size_t i = 0; i < times->n_values; i++)
		json_add(array, put_value(&times->value[i]));
	return array;
}

json_t *times_json(const struct result_times *times, bool histogram)
{
	json_t *object = json_must(json_object());

	json_put(object, "calls", kind_u64_new(times->calls));
	json_put(object, "missed", kind_u64_new(times->missed));
	json_put(object, "inclusive_ns", kind_u64_new(times->inclusive_ns));
	json_put(object, "exclusive_ns",
		 times->own_known ? kind_u64_new(times->exclusive_ns) : json_null());
	for (size_t i = 0; i < FIGURES; i++) {
		const uint64_t *ns = (const void *)((const char *)times + of_calls[i].at);

		json_put(object, of_calls[i].name, times->calls ? kind_u64_new(*ns) : json_null());
	}
	if (times->n_values)
		json_put(object, "values", put_values(times));
	if (histogram)
		json_put(object, "histogram", put_buckets(times));
	return object;
}

static json_t *times_put(KIND_PUT_ARGS)
{
	const struct result_times *times = (const void *)(base + field->at);

	return times->known ? times_json(times, true) : json_must(json_null());
}

static bool get_buckets(const json_t *array, struct result_times *times)
{
	size_t n = json_array_size(array);

	times->bucket = n ? must_calloc(n, sizeof(*times->bucket)) : NULL;
	times->n_buckets = n;
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(array, i);
		struct result_bucket *b = &times->bucket[i];

		if (json_array_size(row) != 3 ||
		    !kind_u64_read(json_array_get(row, 0), &b->from_ns) ||
		    !kind_u64_read(json_array_get(row, 1), &b->to_ns) ||
		    !kind_u64_read(json_array_get(row, 2), &b->calls))
			return false;
	}
	return json_is_array(array);
}

static bool get_value(const json_t *object, struct result_value *v)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const char *type = json_string_value(json_object_get(object, "type"));
	const json_t *sum = json_object_get(object, "sum");

	if (!name || !value_name_ok(name, strlen(name)) || !type)
		return false;
	stpcpy(v->name, name);
	v->type = value_type_find(type, strlen(type));
	v->position = (uint8_t)json_integer_value(json_object_get(object, "argument"));
	v->offset = (uint8_t)json_integer_value(json_object_get(object, "offset"));
	v->memory = json_is_true(json_object_get(object, "memory"));
	v->summed = sum;
	v->sum_known = !json_is_null(sum);
	return v->type != VALUE_TYPES && (!sum || !v->sum_known || kind_u64_read(sum, &v->sum)) &&
	       (!sum || kind_u64_read(json_object_get(object, "sum_calls"), &v->sum_calls));
}

/* Absent: it has none. */
static bool get_values(const json_t *array, struct result_times *times)
{
	size_t n = json_array_size(array);

	if (n > VALUE_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!get_value(json_array_get(array, i), &times->value[i]))
			return false;
	times->n_values = n;
	return true;
}

static const char *times_get(KIND_GET_ARGS)
{
	struct result_times *times = (void *)(base + field->at);
	const json_t *own = json_object_get(value, "exclusive_ns");
	bool fine;

	times->known = true;
	times->own_known = !json_is_null(own);
	fine = kind_u64_read(json_object_get(value, "calls"), &times->calls) &&
	       kind_u64_read(json_object_get(value, "missed"), &times->missed) &&
	       kind_u64_read(json_object_get(value, "inclusive_ns"), &times->inclusive_ns) &&
	       (!times->own_known || kind_u64_read(own, &times->exclusive_ns)) &&
	       get_buckets(json_object_get(value, "histogram"), times) &&
	       get_values(json_object_get(value, "values"), times);
	for (size_t i = 0; i < FIGURES && fine; i++) {
		const json_t *figure = json_object_get(value, of_calls[i].name);

		fine = (json_is_null(figure) && !times->calls) ||
		       kind_u64_read(figure, (uint64_t *)(void *)((char *)times + of_calls[i].at));
	}
	return fine ? NULL : "the times of calls";
}

const struct kind kind_times = { times_put, times_get };

static int by_start(const void *a, const void *b)
{
	const struct result_bucket *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void add_buckets(struct result_times *to, const struct result_times *from)
{
	size_t n = 0;

	to->bucket = must_realloc(to->bucket,
				  (to->n_buckets + from->n_buckets + 1) * sizeof(*to->bucket));
	for (size_t i = 0; i < from->n_buckets; i++)
		to->bucket[to->n_buckets++] = from->bucket[i];
	qsort(to->bucket, to->n_buckets, sizeof(*to->bucket), by_start);
	for (size_t i = 0; i < to->n_buckets; i++) {
		if (n && to->bucket[n - 1].from_ns == to->bucket[i].from_ns)
			to->bucket[n - 1].calls += to->bucket[i].calls;
		else
			to->bucket[n++] = to->bucket[i];
	}
	to->n_buckets = n;
}

static uint64_t quantile(const struct result_times *times, double share)
{
	double want = share * (double)times->calls, seen = 0;

	for (size_t i = 0; i < times->n_buckets; i++) {
		const struct result_bucket *b = &times->bucket[i];
		double here = (double)b->calls, value;

		if (seen + here < want) {
			seen += here;
			continue;
		}
		value = (double)b->from_ns + (double)(b->to_ns - b->from_ns) * (want - seen) / here;
		if (value > (double)times->max_ns)
			return times->max_ns;
		return value < (double)times->min_ns ? times->min_ns : (uint64_t)(value + 0.5);
	}
	return times->max_ns;
}

void result_times_add(struct result_times *to, const struct result_times *from)
{
	bool first = !to->known;

	if (!from->known)
		return;
	to->min_ns = to->calls && to->min_ns < from->min_ns ? to->min_ns : from->min_ns;
	to->max_ns = to->max_ns > from->max_ns ? to->max_ns : from->max_ns;
	to->own_known = from->own_known && (first || to->own_known);
	to->known = true;
	to->calls += from->calls;
	to->missed += from->missed;
	to->inclusive_ns += from->inclusive_ns;
	to->exclusive_ns += from->exclusive_ns;
	add_buckets(to, from);
	to->p50_ns = quantile(to, 0.5);
	to->p90_ns = quantile(to, 0.9);
	to->p99_ns = quantile(to, 0.99);
}
