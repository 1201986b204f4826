/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include "kind.h"

json_t *rows_json(const struct result_rows *rows, const char *const *names, size_t n)
{
	json_t *object, *unknown;

	if (!rows->there)
		return json_must(json_null());
	object = json_must(json_object());
	unknown = json_must(json_object());
	for (size_t i = 0; i < n; i++) {
		json_put(object, names[i],
			 rows->why[i] ? json_must(json_null()) : kind_u64_new(rows->of[i]));
		if (rows->why[i])
			json_put(unknown, names[i], json_name(rows->why[i]));
	}
	json_put(object, "unknown", unknown);
	return object;
}

bool rows_read(const json_t *object, const char *const *names, size_t n, struct result_rows *rows)
{
	const json_t *unknown = json_object_get(object, "unknown");

	if (!json_is_object(object))
		return true;
	rows->there = true;
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(object, names[i]);

		rows->why[i] = json_name_of(unknown, names[i]);
		if (!rows->why[i] && !value)
			rows->why[i] = must_strdup("the version that wrote this did not have it");
		if (!rows->why[i] && !kind_u64_read(value, &rows->of[i]))
			return false;
	}
	return true;
}
