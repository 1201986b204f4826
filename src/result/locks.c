/* SPDX-License-Identifier: MIT */
#include "locks.h"

#include <stdlib.h>

#include "src/base/json.h"

static const char *const names[] = { "lock_order", "lock_order_reason", "locks" };

void locks_put(json_t *document, const struct result *res)
{
	if (res->lock_order && json_object_update(document, res->lock_order) < 0)
		abort();
}

void locks_get(const json_t *document, struct result *res)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		json_t *value = json_object_get(document, names[i]);

		if (!value)
			continue;
		if (!res->lock_order)
			res->lock_order = json_must(json_object());
		json_put(res->lock_order, names[i], json_incref(value));
	}
}
