/* SPDX-License-Identifier: MIT */
/*
 * A list of figures as a JSON object: {"launches": 12, "syncs": null, "syncs_reason": "...",
 * "kinds": {"launch": {"calls": 12}}}. It also has the launches of each kernel.
 */
#include "device.h"
#include "kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"

#define PARTS  "kinds"
#define REASON "_reason"
#define NAMES  "launches_by_name"

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

/* ---- launches by name ---- */

static json_t *launched_put(const struct result_launched *row)
{
	json_t *o = json_must(json_object());

	json_put(o, "preset", json_name(row->preset));
	json_put(o, "name", json_name(row->name));
	json_put(o, "launches", kind_u64_new(row->launches));
	json_put(o, "total_ns", kind_u64_new(row->total_ns));
	json_put(o, "handles", kind_u64_new(row->handles));
	return o;
}

static void launches_put(json_t *object, const struct result_launches *l)
{
	json_t *list;

	if (!l->known && !l->reason)
		return;
	json_put(object, NAMES, l->known ? json_must(json_array()) : json_must(json_null()));
	if (!l->known)
		json_put(object, NAMES REASON, json_name(l->reason));
	list = json_object_get(object, NAMES);
	for (size_t i = 0; i < l->n; i++)
		json_add(list, launched_put(&l->row[i]));
}

static bool launched_get(const json_t *o, struct result_launched *row)
{
	const json_t *name = json_object_get(o, "name");

	row->preset = json_name_of(o, "preset");
	row->name = json_name_take(name);
	return row->preset && (row->name || json_is_null(name)) &&
	       kind_u64_read(json_object_get(o, "launches"), &row->launches) &&
	       kind_u64_read(json_object_get(o, "total_ns"), &row->total_ns) &&
	       kind_u64_read(json_object_get(o, "handles"), &row->handles);
}

static bool launches_get(const json_t *object, struct result_launches *l)
{
	const json_t *list = json_object_get(object, NAMES);
	size_t n = json_array_size(list);
	bool fine = true;

	if (!list)
		return true;
	if (json_is_null(list))
		l->reason = json_name_of(object, NAMES REASON);
	else if (!json_is_array(list))
		return false;
	l->known = json_is_array(list);
	l->row = n ? must_calloc(n, sizeof(*l->row)) : NULL;
	l->n = n;
	for (size_t i = 0; i < n && fine; i++)
		fine = launched_get(json_array_get(list, i), &l->row[i]);
	return fine;
}

static json_t *figures_put(KIND_PUT_ARGS)
{
	const struct result_figure *f = *(struct result_figure *const *)(base + field->at);
	const struct result_launches *launches =
		&((const struct result *)(const void *)base)->launches;
	const struct result_device *device = &((const struct result *)(const void *)base)->device;
	size_t n = *(const size_t *)(const void *)(base + field->count_at);
	json_t *object;
	char *key;

	if (!n && !launches->known && !launches->reason && !device->asked)
		return json_must(json_null());
	object = json_must(json_object());
	launches_put(object, launches);
	result_device_put(object, device);
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

		if (is_reason(key) || !strcmp(key, PARTS) || !strcmp(key, NAMES) ||
		    !strcmp(key, "device"))
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
	fine = fine && launches_get(value, &((struct result *)(void *)base)->launches) &&
	       result_device_get(value, &((struct result *)(void *)base)->device);
	return fine ? NULL : "figures, or null for each";
}

const struct kind kind_figures = { figures_put, figures_get };
