/* SPDX-License-Identifier: MIT */
#include "hardware.h"

#include "kind.h"

json_t *hardware_json(const struct result_hardware *h)
{
	json_t *object;

	if (!h->there)
		return json_must(json_null());
	object = json_must(json_object());
	json_put(object, "limit", json_name(h->limit));
	json_put(object, "user_only",
		 h->limit ? json_must(json_null()) : json_boolean(h->about.user_only));
	json_put(object, "threads", kind_u64_new(h->about.threads));
	json_put(object, "threads_left_out", kind_u64_new(h->about.left_out));
	json_put(object, "threads_unsure", kind_u64_new(h->about.unsure));
	json_put(object, "counted",
		 h->limit ? json_must(json_null()) : json_real(h->about.counted));
	return object;
}

bool hardware_read_json(const json_t *object, struct result_hardware *h)
{
	if (!json_is_object(object))
		return true;
	h->there = true;
	h->limit = json_name_of(object, "limit");
	h->about.user_only = json_is_true(json_object_get(object, "user_only"));
	h->about.counted = json_number_value(json_object_get(object, "counted"));
	return kind_u64_read(json_object_get(object, "threads"), &h->about.threads) &&
	       kind_u64_read(json_object_get(object, "threads_left_out"), &h->about.left_out) &&
	       kind_u64_read(json_object_get(object, "threads_unsure"), &h->about.unsure);
}
