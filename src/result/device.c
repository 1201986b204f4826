/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <stddef.h>
#include "kind.h"
#include "src/base/text.h"

#define KEY "device"

/* Known with the whole. */
static const struct {
	const char *name;
	size_t at;
} sums[] = {
	{ "kernels", offsetof(struct result_device, kernels) },
	{ "kernel_ns", offsetof(struct result_device, kernel_ns) },
	{ "copies", offsetof(struct result_device, copies) },
	{ "copy_ns", offsetof(struct result_device, copy_ns) },
	{ "copied_bytes", offsetof(struct result_device, copied_bytes) },
	{ "memsets", offsetof(struct result_device, memsets) },
	{ "memset_ns", offsetof(struct result_device, memset_ns) },
	{ "kernels_left_out", offsetof(struct result_device, left_out) },
};

/* Of the run, where the agent was at work at all. */
static const struct {
	const char *name;
	size_t at;
} counts[] = {
	{ "processes", offsetof(struct result_device, processes) },
	{ "records", offsetof(struct result_device, records) },
	{ "written", offsetof(struct result_device, written) },
	{ "dropped", offsetof(struct result_device, dropped) },
	{ "unknown", offsetof(struct result_device, unknown) },
	{ "cupti_dropped", offsetof(struct result_device, cupti_dropped) },
	{ "clock_error_ns", offsetof(struct result_device, clock_error_ns) },
	{ "late_ns", offsetof(struct result_device, late_ns) },
};

static uint64_t *field(const struct result_device *d, size_t at)
{
	return (uint64_t *)(void *)((char *)(uintptr_t)d + at);
}

static json_t *busy_json(const struct result_device *d)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < d->n_busy; i++) {
		json_t *o = json_must(json_object());

		json_put(o, "pid", json_must(json_integer(d->busy[i].pid)));
		json_put(o, "device", kind_u64_new(d->busy[i].device));
		json_put(o, "busy_ns",
			 d->busy[i].known ? kind_u64_new(d->busy[i].busy_ns) : json_null());
		json_add(list, o);
	}
	return list;
}

static json_t *kernels_json(const struct result_device *d)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < d->n_rows; i++) {
		const struct result_device_kernel *row = &d->row[i];
		json_t *o = json_must(json_object());

		json_put(o, "name", json_name(row->name));
		json_put(o, "count", kind_u64_new(row->n));
		json_put(o, "total_ns", kind_u64_new(row->total_ns));
		json_put(o, "min_ns", kind_u64_new(row->min_ns));
		json_put(o, "max_ns", kind_u64_new(row->max_ns));
		json_add(list, o);
	}
	return list;
}

void result_device_put(json_t *cuda, const struct result_device *d)
{
	json_t *o;

	if (!d->asked)
		return;
	o = json_must(json_object());
	json_put(cuda, KEY, o);
	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		json_put(o, sums[i].name,
			 d->known ? kind_u64_new(*field(d, sums[i].at)) : json_null());
	if (d->reason)
		json_put(o, "reason", json_name(d->reason));
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		json_put(o, counts[i].name,
			 d->counted ? kind_u64_new(*field(d, counts[i].at)) : json_null());
	json_put(o, "busy", d->known ? busy_json(d) : json_null());
	json_put(o, "by_kernel", d->known ? kernels_json(d) : json_null());
}

static void take_busy(const json_t *list, struct result_device *d)
{
	d->n_busy = json_array_size(list);
	d->busy = must_calloc(d->n_busy + 1, sizeof(*d->busy));
	for (size_t i = 0; i < d->n_busy; i++) {
		const json_t *o = json_array_get(list, i);

		d->busy[i].pid = (int32_t)json_integer_value(json_object_get(o, "pid"));
		kind_u64_read(json_object_get(o, "device"), &d->busy[i].device);
		d->busy[i].known = kind_u64_read(json_object_get(o, "busy_ns"),
						 &d->busy[i].busy_ns);
	}
}

static bool take_rows(const json_t *list, struct result_device *d)
{
	bool fine = true;

	d->n_rows = json_array_size(list);
	d->row = must_calloc(d->n_rows + 1, sizeof(*d->row));
	for (size_t i = 0; i < d->n_rows && fine; i++) {
		const json_t *o = json_array_get(list, i);
		struct result_device_kernel *row = &d->row[i];

		row->name = json_name_of(o, "name");
		fine = row->name && kind_u64_read(json_object_get(o, "count"), &row->n) &&
		       kind_u64_read(json_object_get(o, "total_ns"), &row->total_ns) &&
		       kind_u64_read(json_object_get(o, "min_ns"), &row->min_ns) &&
		       kind_u64_read(json_object_get(o, "max_ns"), &row->max_ns);
	}
	return fine;
}

bool result_device_get(const json_t *cuda, struct result_device *d)
{
	const json_t *o = json_object_get(cuda, KEY);

	d->asked = o;
	if (!o)
		return true;
	if (!json_is_object(o))
		return false;
	d->known = d->counted = true;
	for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		d->known &= kind_u64_read(json_object_get(o, sums[i].name), field(d, sums[i].at));
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		d->counted &= kind_u64_read(json_object_get(o, counts[i].name),
					    field(d, counts[i].at));
	d->reason = json_name_of(o, "reason");
	if (!d->known)
		return true;
	take_busy(json_object_get(o, "busy"), d);
	return take_rows(json_object_get(o, "by_kernel"), d);
}
