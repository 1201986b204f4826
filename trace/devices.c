/* SPDX-License-Identifier: MIT */
#include "devices.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

enum { SLOTS = 2 * DEVICES_KERNELS };

static bool value_of(const struct trace_span *span, const char *name, uint64_t *value)
{
	for (uint32_t i = 0; i < span->n_values; i++) {
		if (strcmp(span->value[i].name, name) != 0 || !span->value[i].known)
			continue;
		*value = span->value[i].value;
		return true;
	}
	return false;
}

/* ---- by kernel ---- */

static uint32_t *slot_of(struct devices *d, const char *name)
{
	uint64_t hash = 14695981039346656037ull;
	size_t i;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 1099511628211ull;
	i = (size_t)(hash >> 32) % SLOTS;
	while (d->slot[i] && strcmp(d->row[d->slot[i] - 1].name, name) != 0)
		i = (i + 1) % SLOTS;
	return &d->slot[i];
}

static void add_kernel(struct devices *d, const char *name, uint64_t ns)
{
	struct devices_row *row;
	uint32_t *slot;

	if (!d->slot) {
		d->slot = must_calloc(SLOTS, sizeof(*d->slot));
		d->row = must_calloc(DEVICES_KERNELS, sizeof(*d->row));
	}
	slot = slot_of(d, name);
	if (!*slot && d->n_rows == DEVICES_KERNELS) {
		d->kernels_left++;
		return;
	}
	if (!*slot) {
		*slot = (uint32_t)++d->n_rows;
		d->row[d->n_rows - 1] = (struct devices_row){ .name = must_strdup(name),
							      .min_ns = UINT64_MAX };
	}
	row = &d->row[*slot - 1];
	row->n++;
	row->total_ns += ns;
	row->min_ns = ns < row->min_ns ? ns : row->min_ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
}

/* ---- busy ---- */

/* The older half can get no further interval, or one that comes late. */
static void close_half(struct devices_busy *b)
{
	size_t n = b->n_open / 2;

	for (size_t i = 0; i < n; i++)
		b->busy_ns += b->open[i].end - b->open[i].start;
	b->closed = b->open[n - 1].end;
	b->n_open -= n;
	memmove(b->open, b->open + n, b->n_open * sizeof(*b->open));
}

static void make_room(struct devices_busy *b)
{
	if (b->n_open == DEVICES_OPEN)
		close_half(b);
	if (b->n_open < b->room)
		return;
	b->room = b->room ? b->room * 2 : 64;
	b->open = must_realloc(b->open, b->room * sizeof(*b->open));
}

static void add_interval(struct devices_busy *b, uint64_t start, uint64_t end)
{
	size_t first, last;

	make_room(b);
	b->late |= start < b->closed;
	/* Those from `first` on that touch it become one with it. */
	for (last = b->n_open; last && b->open[last - 1].start > end; last--)
		;
	for (first = last; first && b->open[first - 1].end >= start; first--) {
		start = b->open[first - 1].start < start ? b->open[first - 1].start : start;
		end = b->open[first - 1].end > end ? b->open[first - 1].end : end;
	}
	memmove(b->open + first + 1, b->open + last, (b->n_open - last) * sizeof(*b->open));
	b->n_open += 1 + first - last;
	b->open[first] = (struct devices_interval){ start, end };
}

static struct devices_busy *busy_of(struct devices *d, int32_t pid, uint64_t device)
{
	for (size_t i = 0; i < d->n_busy; i++)
		if (d->busy[i].pid == pid && d->busy[i].device == device)
			return &d->busy[i];
	if (d->n_busy == DEVICES_MAX)
		return NULL;
	d->busy = must_realloc(d->busy, (d->n_busy + 1) * sizeof(*d->busy));
	d->busy[d->n_busy] = (struct devices_busy){ .pid = pid, .device = device };
	return &d->busy[d->n_busy++];
}

static void add_busy(struct devices *d, int32_t pid, const struct trace_span *span)
{
	struct devices_busy *b = NULL;
	uint64_t device;

	if (value_of(span, TRACE_DEVICE_NUMBER, &device))
		b = busy_of(d, pid, device);
	if (b)
		add_interval(b, span->start_ns, span->start_ns + span->dur_ns);
	else
		d->without++;
}

/* ---- the whole ---- */

static void add(struct devices_sum *sum, uint64_t ns)
{
	sum->n++;
	sum->ns += ns;
}

void devices_add(struct devices *d, int32_t pid, const char *kind, const char *name,
		 const struct trace_span *span)
{
	uint64_t bytes;

	if (kind && !strcmp(kind, TRACE_DEVICE_COPY)) {
		add(&d->copies, span->dur_ns);
		if (value_of(span, TRACE_DEVICE_BYTES, &bytes))
			d->copied_bytes += bytes;
		else
			d->bytes_unknown = true;
	} else if (kind && !strcmp(kind, TRACE_DEVICE_MEMSET)) {
		add(&d->memsets, span->dur_ns);
	} else {
		add(&d->kernels, span->dur_ns);
		add_kernel(d, name ? name : "?", span->dur_ns);
	}
	add_busy(d, pid, span);
}

static int longest_first(const void *a, const void *b)
{
	const struct devices_row *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

void devices_finish(struct devices *d)
{
	if (d->n_rows)
		qsort(d->row, d->n_rows, sizeof(*d->row), longest_first);
	free(d->slot);
	d->slot = NULL;
	for (size_t i = 0; i < d->n_busy; i++) {
		struct devices_busy *b = &d->busy[i];

		for (size_t k = 0; k < b->n_open; k++)
			b->busy_ns += b->open[k].end - b->open[k].start;
		free(b->open);
		b->open = NULL;
		b->n_open = 0;
	}
}

void devices_free(struct devices *d)
{
	for (size_t i = 0; i < d->n_rows; i++)
		free(d->row[i].name);
	for (size_t i = 0; i < d->n_busy; i++)
		free(d->busy[i].open);
	free(d->row);
	free(d->busy);
	free(d->slot);
	*d = (struct devices){ .n_rows = 0 };
}
