/* SPDX-License-Identifier: MIT */
/*
 * A list of figures as a JSON object: {"launches": 12, "syncs": null, "syncs_reason": "...",
 * "kinds": {"launch": {"calls": 12}}}.
 */
#include "kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"

#define PARTS  "kinds"
#define REASON "_reason"

/* The object for a name with a part, made where there is none; *name goes on behind the part. */
static json_t *part_of(json_t *object, const char **name)
{
	const char *dot = strchr(*name, '.');
	json_t *parts = object;
	char *part;

	if (!dot)
		return object;
	part = must(strndup(*name, (size_t)(dot - *name)));
	*name = dot + 1;
	for (int i = 0; i < 2; i++) {
		const char *key = i ? part : PARTS;

		if (!json_object_get(parts, key))
			json_put(parts, key, json_must(json_object()));
		parts = json_object_get(parts, key);
	}
	free(part);
	return parts;
}

/* The key of a reason. The caller frees. */
static char *reason_key(const char *name)
{
	char *key;

	if (asprintf(&key, "%s" REASON, name) < 0)
		abort();
	return key;
}

static bool is_reason(const char *key)
{
	size_t len = strlen(key), n = strlen(REASON);

	return len >= n && !strcmp(key + len - n, REASON);
}

static json_t *figure_put(const struct result_figure *f)
{
	if (!f->known)
		return json_must(json_null());
	return f->real ? json_must(json_real(f->x)) : kind_u64_new(f->n);
}

static json_t *figures_put(KIND_PUT_ARGS)
{
	const struct result_figure *f = *(struct result_figure *const *)(base + field->at);
	size_t n = *(const size_t *)(const void *)(base + field->count_at);
	json_t *object;
	char *key;

	if (!n)
		return json_must(json_null());
	object = json_must(json_object());
	for (size_t i = 0; i < n; i++) {
		const char *name = f[i].name;
		json_t *in = part_of(object, &name);

		json_put(in, name, figure_put(&f[i]));
		if (f[i].known)
			continue;
		key = reason_key(name);
		json_put(in, key, json_name(f[i].reason ? f[i].reason : "not measured"));
		free(key);
	}
	return object;
}

static struct result_figure *grow(struct result_figure **list, size_t *n)
{
	*list = must_realloc(*list, (*n + 1) * sizeof(**list));
	(*list)[*n] = (struct result_figure){ 0 };
	return &(*list)[(*n)++];
}

/* The figures of one object, whose names get the prefix. */
static bool take(const json_t *object, const char *prefix, struct result_figure **list, size_t *n)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		struct result_figure *f;
		char *reason;

		if (is_reason(key) || !strcmp(key, PARTS))
			continue;
		f = grow(list, n);
		if (asprintf(&f->name, "%s%s%s", prefix, *prefix ? "." : "", key) < 0)
			abort();
		f->known = !json_is_null(value);
		reason = reason_key(key);
		if (!f->known)
			f->reason = json_name_take(json_object_get(object, reason));
		free(reason);
		f->real = json_is_real(value);
		f->x = json_real_value(value);
		if (f->known && !f->real && !kind_u64_read(value, &f->n))
			return false;
	}
	return true;
}

static const char *figures_get(KIND_GET_ARGS)
{
	struct result_figure **list = (struct result_figure **)(void *)(base + field->at);
	size_t *n = (size_t *)(void *)(base + field->count_at);
	json_t *parts = json_object_get(value, PARTS), *part;
	const char *key;
	bool fine = json_is_object(value) && take(value, "", list, n);

	json_object_foreach(parts, key, part)
		fine = fine && json_is_object(part) && take(part, key, list, n);
	return fine ? NULL : "figures, or null for each";
}

const struct kind kind_figures = { figures_put, figures_get };
