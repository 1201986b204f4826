/* SPDX-License-Identifier: MIT */
/* How long calls took, as JSON: {"calls": ..., "p50_ns": ..., "histogram": [[from, to, calls]]}. */
#include "times.h"
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

		json_add(array, json_pack("[o,o,o]", kind_u64_new(b->from_ns),
					  kind_u64_new(b->to_ns), kind_u64_new(b->calls)));
	}
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
	       get_buckets(json_object_get(value, "histogram"), times);
	for (size_t i = 0; i < FIGURES && fine; i++) {
		const json_t *figure = json_object_get(value, of_calls[i].name);

		fine = (json_is_null(figure) && !times->calls) ||
		       kind_u64_read(figure, (uint64_t *)(void *)((char *)times + of_calls[i].at));
	}
	return fine ? NULL : "the times of calls";
}

const struct kind kind_times = { times_put, times_get };
