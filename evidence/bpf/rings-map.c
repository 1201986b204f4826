/* SPDX-License-Identifier: MIT */
/* The memory of the rings: maps of the program in the kernel. */
#include "rings-map.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "src/base/must.h"

enum { SIZE_MOST = 8192, SIZE_LEAST = 256, BYTES_MOST = 32 << 20 };

static uint32_t size_for(unsigned int n)
{
	uint32_t size = SIZE_MOST;

	while (size > SIZE_LEAST && (uint64_t)n * size * sizeof(struct evidence_event) > BYTES_MOST)
		size /= 2;
	return size;
}

static struct bpf_map *map_of(const struct bpf_object *obj, const char *name)
{
	return bpf_object__find_map_by_name(obj, name);
}

/* The constant `records` of the program has a section of its own. */
static bool turn_on(const struct bpf_object *obj)
{
	const __u32 one = 1;
	struct bpf_map *map = NULL;

	while ((map = bpf_object__next_map(obj, map)))
		if (strstr(bpf_map__name(map), ".records"))
			return bpf_map__set_initial_value(map, &one, sizeof(one)) == 0;
	return false;
}

bool rings_ask(struct rings *r, struct bpf_object *obj)
{
	int n = libbpf_num_possible_cpus();

	r->n = n > 0 ? (unsigned int)n : 1;
	r->size = size_for(r->n);
	r->head = must_calloc(r->n, sizeof(*r->head));
	return turn_on(obj) && bpf_map__set_max_entries(map_of(obj, "rings"), r->n) == 0 &&
	       bpf_map__set_max_entries(map_of(obj, "events"), r->n * r->size) == 0;
}

static void *map_shared(const struct bpf_object *obj, const char *name, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(map_of(obj, name)), 0);

	return at == MAP_FAILED ? NULL : at;
}

bool rings_map(struct rings *r, const struct bpf_object *obj)
{
	r->ring = map_shared(obj, "rings", r->n * sizeof(*r->ring));
	r->event = map_shared(obj, "events", (size_t)r->n * r->size * sizeof(*r->event));
	return r->ring && r->event;
}

void rings_unmap(struct rings *r)
{
	if (r->ring)
		munmap(r->ring, r->n * sizeof(*r->ring));
	if (r->event)
		munmap(r->event, (size_t)r->n * r->size * sizeof(*r->event));
	free(r->head);
}
