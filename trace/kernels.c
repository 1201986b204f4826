/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

static const struct trace_value *handle_of(const struct trace_span *span)
{
	for (uint32_t i = 0; i < span->n_values; i++)
		if (!strcmp(span->value[i].name, KERNELS_VALUE) && span->value[i].known)
			return &span->value[i];
	return NULL;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

void kernels_free(struct kernels *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->row[i].name);
	k->n = 0;
}

void kernels_add(struct kernels *k, int32_t pid, unsigned int api, const struct trace_span *span)
{
	const struct trace_value *v = handle_of(span);
	size_t i = 0;

	if (!v) {
		k->unknown++;
		return;
	}
	while (i < k->n && (k->row[i].handle != v->value || k->row[i].pid != pid ||
			    k->row[i].api != api || !same(k->row[i].name, span->kernel)))
		i++;
	if (i == KERNELS_MAX) {
		k->others++;
		return;
	}
	if (i == k->n)
		k->row[k->n++] = (struct kernels_row){
			.pid = pid,
			.api = api,
			.handle = v->value,
			.name = span->kernel ? must_strdup(span->kernel) : NULL,
		};
	k->row[i].launches++;
	k->row[i].total_ns += span->dur_ns;
}
