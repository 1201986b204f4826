/* SPDX-License-Identifier: MIT */
/* How long calls took, as JSON: {"calls": ..., "p50_ns": ..., "histogram": [[from, to, calls]]}. */
#include "kind.h"

#include <stdlib.h>

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

		json_add(array, json_pack("[I,I,I]", (json_int_t)b->from_ns, (json_int_t)b->to_ns,
					  (json_int_t)b->calls));
	}
	return array;
}

static json_t *times_put(KIND_PUT_ARGS)
{
	const struct result_times *times = (const void *)(base + field->at);
	json_t *object;

	if (!times->known)
		return json_must(json_null());
	object = json_must(json_object());
	json_put(object, "calls", json_integer((json_int_t)times->calls));
	json_put(object, "missed", json_integer((json_int_t)times->missed));
	json_put(object, "inclusive_ns", json_integer((json_int_t)times->inclusive_ns));
	json_put(object, "exclusive_ns",
		 times->own_known ? json_integer((json_int_t)times->exclusive_ns) : json_null());
	for (size_t i = 0; i < FIGURES; i++) {
		const uint64_t *ns = (const void *)((const char *)times + of_calls[i].at);

		json_put(object, of_calls[i].name,
			 times->calls ? json_integer((json_int_t)*ns) : json_null());
	}
	json_put(object, "histogram", put_buckets(times));
	return object;
}

static bool get_number(const json_t *value, uint64_t *to)
{
	*to = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool get_buckets(const json_t *array, struct result_times *times)
{
	size_t n = json_array_size(array);

	times->bucket = n ? must_calloc(n, sizeof(*times->bucket)) : NULL;
	times->n_buckets = n;
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(array, i);
		struct result_bucket *b = &times->bucket[i];

		if (json_array_size(row) != 3 || !get_number(json_array_get(row, 0), &b->from_ns) ||
		    !get_number(json_array_get(row, 1), &b->to_ns) ||
		    !get_number(json_array_get(row, 2), &b->calls))
			return false;
	}
	return json_is_array(array);
}

static const char *times_get(KIND_GET_ARGS)
{
	struct result_times *times = (void *)(base + field->at);
	const json_t *own = json_object_get(value, "exclusive_ns");
	bool fine;

	times->known = true;
	times->own_known = !json_is_null(own);
	fine = get_number(json_object_get(value, "calls"), &times->calls) &&
	       get_number(json_object_get(value, "missed"), &times->missed) &&
	       get_number(json_object_get(value, "inclusive_ns"), &times->inclusive_ns) &&
	       (!times->own_known || get_number(own, &times->exclusive_ns)) &&
	       get_buckets(json_object_get(value, "histogram"), times);
	for (size_t i = 0; i < FIGURES && fine; i++) {
		const json_t *figure = json_object_get(value, of_calls[i].name);

		fine = (json_is_null(figure) && !times->calls) ||
		       get_number(figure, (uint64_t *)(void *)((char *)times + of_calls[i].at));
	}
	return fine ? NULL : "the times of calls";
}

const struct kind kind_times = { times_put, times_get };
