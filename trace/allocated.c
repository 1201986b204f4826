/* SPDX-License-Identifier: MIT */
#include "allocated.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

enum { EVENTS_MOST = 1 << 23 };

static const struct trace_value *value_of(const struct trace_span *span, const char *name)
{
	for (uint32_t i = 0; i < span->n_values; i++)
		if (!strcmp(span->value[i].name, name))
			return &span->value[i];
	return NULL;
}

static void keep(struct allocated *a, const struct allocated_event *event)
{
	if (a->n == EVENTS_MOST) {
		a->too_many = true;
		return;
	}
	if (a->n == a->room) {
		a->room = a->room ? a->room * 2 : 256;
		a->event = must_realloc(a->event, a->room * sizeof(*a->event));
	}
	a->event[a->n++] = *event;
}

void allocated_add(struct allocated *a, int32_t pid, const struct trace_span *span)
{
	const struct trace_value *address = value_of(span, "address");
	const struct trace_value *bytes = value_of(span, "bytes");
	const struct trace_value *result = value_of(span, "result");

	if (!address || !result)
		return;
	if (result->known && result->value)
		return;
	if (!result->known || !address->known || (bytes && !bytes->known)) {
		a->unknown++;
		return;
	}
	if (!address->value)
		return;
	keep(a, &(struct allocated_event){
			.ns = span->start_ns + (bytes ? span->dur_ns : 0),
			.address = address->value,
			.bytes = bytes ? bytes->value : 0,
			.pid = pid,
			.frees = !bytes,
		});
}

/* By time; at the same time, what is freed makes the address free for the next one. */
static int by_time(const void *x, const void *y)
{
	const struct allocated_event *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (int)b->frees - (int)a->frees;
}

/* Allocations in use, by address: numbers of events plus 1, by hash. */
struct used {
	const struct allocated_event *event;
	uint32_t *slot;
	size_t slots;
};

static size_t slot_of(const struct used *u, const struct allocated_event *e)
{
	uint64_t hash = (e->address ^ (uint64_t)e->pid << 40) * 0x9e3779b97f4a7c15u;
	size_t at = (hash ^ hash >> 32) & (u->slots - 1);

	for (; u->slot[at]; at = (at + 1) & (u->slots - 1)) {
		const struct allocated_event *there = &u->event[u->slot[at] - 1];

		if (there->address == e->address && there->pid == e->pid)
			break;
	}
	return at;
}

static void replay(struct allocated *a, struct used *u, size_t i)
{
	struct allocated_event *e = &a->event[i];
	size_t at = slot_of(u, e);
	struct allocated_event *was = u->slot[at] ? &a->event[u->slot[at] - 1] : NULL;

	a->frees += e->frees;
	a->allocations += !e->frees;
	a->bytes += e->bytes;
	if (e->frees && (!was || was->frees)) {
		a->older++;
		return;
	}
	/* A place keeps its address: the latest event there says whether it is in use. */
	u->slot[at] = (uint32_t)i + 1;
	if (was && !was->frees) {
		a->live--;
		a->live_bytes -= was->bytes;
		a->freed_bytes += e->frees ? was->bytes : 0;
	}
	a->live += !e->frees;
	a->live_bytes += e->bytes;
	if (a->live_bytes > a->peak_bytes)
		a->peak_bytes = a->live_bytes;
}

void allocated_finish(struct allocated *a)
{
	struct used u = { .event = a->event, .slots = 64 };

	if (a->too_many || !a->n)
		return;
	while (u.slots < 2 * a->n)
		u.slots *= 2;
	u.slot = must_calloc(u.slots, sizeof(*u.slot));
	qsort(a->event, a->n, sizeof(*a->event), by_time);
	for (size_t i = 0; i < a->n; i++)
		replay(a, &u, i);
	free(u.slot);
}

void allocated_free(struct allocated *a)
{
	free(a->event);
	*a = (struct allocated){ 0 };
}
