/* SPDX-License-Identifier: MIT */
#include "returns.h"

#include <string.h>

static void count(struct returns *r, uint32_t function, int64_t code)
{
	size_t i = 0;

	while (i < r->n && (r->row[i].function != function || r->row[i].code != code))
		i++;
	if (i == RETURNS_MAX) {
		r->others++;
		return;
	}
	if (i == r->n)
		r->row[r->n++] = (struct returns_row){ function, code, 0 };
	r->row[i].calls++;
}

void returns_add(struct returns *r, const struct trace_span *span)
{
	for (uint32_t i = 0; i < span->n_values; i++) {
		const struct trace_value *v = &span->value[i];

		if (strcmp(v->name, RETURNS_VALUE) != 0)
			continue;
		if (v->type == VALUE_STR)
			return;
		r->known += v->known;
		if (!v->known || !v->value)
			return;
		r->failed++;
		count(r, span->function, (int64_t)v->value);
		return;
	}
}
