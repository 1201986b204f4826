/* SPDX-License-Identifier: MIT */
#include "rings.h"

#include <string.h>

/* The oldest event of a ring; NULL: there is none. */
static const struct evidence_event *oldest(const struct rings *r, unsigned int cpu)
{
	uint64_t tail = r->ring[cpu].tail;

	return tail == r->head[cpu] ? NULL :
				      &r->event[(size_t)cpu * r->size + (tail & (r->size - 1))];
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
			.waker = (pid_t)e->waker,
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
	for (unsigned int cpu = 0; cpu < r->n; cpu++)
		r->head[cpu] = __atomic_load_n(&r->ring[cpu].head, __ATOMIC_ACQUIRE);
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
