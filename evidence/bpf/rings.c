/* SPDX-License-Identifier: MIT */
#include "rings.h"

#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>

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

/* The constant `tells` of the program has a section of its own. */
static bool turn_on(const struct bpf_object *obj)
{
	const __u32 one = 1;
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
		if (strstr(bpf_map__name(map), ".tells"))
			return bpf_map__set_initial_value(map, &one, sizeof(one)) == 0;
	return false;
}

bool rings_ask(struct rings *r, struct bpf_object *obj)
{
	int n = libbpf_num_possible_cpus();

	r->n = n > 0 ? (unsigned int)n : 1;
	r->size = size_for(r->n);
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
}

/* The oldest event of a ring; NULL: there is none. */
static const struct evidence_event *oldest(const struct rings *r, unsigned int cpu)
{
	const struct evidence_ring *ring = &r->ring[cpu];
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	if (head == ring->tail)
		return NULL;
	return &r->event[(size_t)cpu * r->size + (ring->tail & (r->size - 1))];
}

static void hand_on(const struct evidence_event *e, unsigned int cpu, evidence_pause_fn *fn,
		    void *ctx)
{
	char name[sizeof(e->name) + 1] = "";

	memcpy(name, e->name, sizeof(e->name));
	fn(ctx, &(struct evidence_pause){
			.t_ns = e->at,
			.reason = e->pause.state % EVIDENCE_STATES,
			.wait_ns = e->pause.ns,
			.queue_ns = e->pause.queue_ns,
			.futex = e->pause.futex,
			.pid = (pid_t)e->tgid,
			.tid = (pid_t)e->tid,
			.cpu = cpu,
			.name = name,
			.cut = e->pause.flags & EVIDENCE_OFF_CUT,
			.counted = !e->pause.flags,
			.began_ns = e->began,
			.number = e->number,
		});
}

/* The events of a ring are in order: of all rings, the one whose next event is the oldest. */
void rings_take(struct rings *r, uint64_t until_ns, size_t most, evidence_pause_fn *fn, void *ctx)
{
	while (most--) {
		const struct evidence_event *first = NULL, *e;
		unsigned int from = 0;

		for (unsigned int cpu = 0; cpu < r->n; cpu++) {
			e = oldest(r, cpu);
			if (e && (!first || e->at < first->at)) {
				first = e;
				from = cpu;
			}
		}
		if (!first || first->at > until_ns)
			return;
		hand_on(first, from, fn, ctx);
		__atomic_store_n(&r->ring[from].tail, r->ring[from].tail + 1, __ATOMIC_RELEASE);
	}
}
