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
	memset(k->slot, 0, sizeof(k->slot));
}

/* The slot of the row for these, or the free one for it. */
static uint16_t *slot_of(struct kernels *k, const struct kernels_row *row)
{
	uint64_t hash = (row->handle ^ (uint64_t)(uint32_t)row->pid << 32 ^ row->api) *
			0x9e3779b97f4a7c15ull;
	size_t i = (size_t)(hash >> 40) % KERNELS_SLOTS;

	for (;; i = (i + 1) % KERNELS_SLOTS) {
		const struct kernels_row *r;

		if (!k->slot[i])
			return &k->slot[i];
		r = &k->row[k->slot[i] - 1];
		if (r->handle == row->handle && r->pid == row->pid && r->api == row->api &&
		    same(r->name, row->name))
			return &k->slot[i];
	}
}

void kernels_add(struct kernels *k, int32_t pid, unsigned int api, const struct trace_span *span)
{
	const struct trace_value *v = handle_of(span);
	struct kernels_row own = { .pid = pid,
				   .api = api,
				   .name = (char *)(uintptr_t)span->kernel };
	uint16_t *slot;

	if (!v) {
		k->unknown++;
		return;
	}
	own.handle = v->value;
	slot = slot_of(k, &own);
	if (!*slot && k->n == KERNELS_MAX) {
		k->others++;
		return;
	}
	if (!*slot) {
		own.name = span->kernel ? must_strdup(span->kernel) : NULL;
		k->row[k->n++] = own;
		*slot = (uint16_t)k->n;
	}
	k->row[*slot - 1].launches++;
	k->row[*slot - 1].total_ns += span->dur_ns;
}

/* ---- by name ---- */

static int compare_names(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int by_name(const void *a, const void *b)
{
	const struct kernels_name *x = a, *y = b;

	if (x->api != y->api)
		return x->api < y->api ? -1 : 1;
	return compare_names(x->name, y->name);
}

static int most_launches_first(const void *a, const void *b)
{
	const struct kernels_name *x = a, *y = b;

	if (x->launches != y->launches)
		return x->launches < y->launches ? 1 : -1;
	return by_name(a, b);
}

struct kernels_name *kernels_by_name(const struct kernels *k, size_t *n)
{
	struct kernels_name *list = must_calloc(k->n + 1, sizeof(*list));
	size_t kept = 0;

	for (size_t i = 0; i < k->n; i++)
		list[i] = (struct kernels_name){ k->row[i].api, k->row[i].name, k->row[i].launches,
						 k->row[i].total_ns, 1 };
	qsort(list, k->n, sizeof(*list), by_name);
	for (size_t i = 0; i < k->n; i++) {
		if (kept && !by_name(&list[kept - 1], &list[i])) {
			list[kept - 1].launches += list[i].launches;
			list[kept - 1].total_ns += list[i].total_ns;
			list[kept - 1].handles++;
		} else {
			list[kept++] = list[i];
		}
	}
	qsort(list, kept, sizeof(*list), most_launches_first);
	*n = kept;
	return list;
}
