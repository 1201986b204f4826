/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "trace.h"
#include "src/base/must.h"

enum { SLOTS_LEAST = 256 };

static uint32_t *slot_of(uint32_t *slot, size_t slots, struct trace_track *const *track, pid_t pid,
			 uint64_t owner)
{
	uint64_t h = (owner ^ (uint64_t)pid << 32) * 0x9e3779b97f4a7c15ull;
	size_t i = h >> 32 & (slots - 1);

	while (slot[i] && (track[slot[i] - 1]->pid != pid || track[slot[i] - 1]->owner != owner))
		i = (i + 1) & (slots - 1);
	return &slot[i];
}

static void grow(struct trace_threads *all)
{
	size_t slots = all->slots ? all->slots * 2 : SLOTS_LEAST;
	uint32_t *slot = must_calloc(slots, sizeof(*slot));

	for (size_t i = 0; i < all->slots; i++) {
		const struct trace_track *t = all->slot[i] ? all->track[all->slot[i] - 1] : NULL;

		if (t)
			*slot_of(slot, slots, all->track, t->pid, t->owner) = t->id;
	}
	free(all->slot);
	all->slot = slot;
	all->slots = slots;
}

struct trace_track *trace_thread_add(struct trace_threads *all, pid_t pid, pid_t tid,
				     uint64_t owner, uint64_t from)
{
	struct trace_track *t;
	uint32_t *slot;

	if (all->n * 2 >= all->slots)
		grow(all);
	slot = slot_of(all->slot, all->slots, all->track, pid, owner);
	t = *slot ? all->track[*slot - 1] : NULL;
	if (t && t->tid == tid)
		return t;
	if (!(all->n & (all->n - 1)))
		all->track = must_realloc(all->track,
					  (all->n ? all->n * 2 : 1) * sizeof(*all->track));
	t = must_calloc(1, sizeof(*t));
	*t = (struct trace_track){ (uint32_t)all->n + 1, pid, tid, owner, from, false, *slot };
	all->track[all->n++] = t;
	*slot = t->id;
	return t;
}

struct trace_track *trace_thread_of(const struct trace_threads *all, pid_t pid, uint64_t owner,
				    uint64_t ticks)
{
	uint32_t id = all->slots ? *slot_of(all->slot, all->slots, all->track, pid, owner) : 0;

	while (id) {
		struct trace_track *t = all->track[id - 1];

		if (t->from <= ticks || !t->older)
			return t;
		id = t->older;
	}
	return NULL;
}

bool trace_thread_known(const struct trace_threads *all, pid_t pid, pid_t tid)
{
	for (size_t i = all->n; i-- > 0;)
		if (all->track[i]->pid == pid && all->track[i]->tid == tid && all->track[i]->owner)
			return true;
	return false;
}

void trace_threads_gone(struct trace_threads *all, pid_t pid)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->track[i]->pid == pid)
			all->track[i]->owner = 0;
}

void trace_threads_free(struct trace_threads *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->track[i]);
	free(all->track);
	free(all->slot);
	*all = (struct trace_threads){ 0 };
}
