/* SPDX-License-Identifier: MIT */
#include "nest.h"

#include <stdlib.h>
#include "src/base/must.h"

enum nest_fit nest_fit(const struct nest *nest, uint64_t start, size_t *first)
{
	const struct nest_root *before;
	size_t i = nest->n;

	while (i && nest->root[i - 1].start >= start)
		i--;
	*first = i;
	before = i ? &nest->root[i - 1] : NULL;
	if (!before || before->end <= start)
		return NEST_FITS;
	return before->n > 1 ? NEST_GUESSED : NEST_CROSSES;
}

static uint64_t share(uint64_t whole, uint64_t part, uint64_t of)
{
	return of ? (uint64_t)((__uint128_t)whole * part / of) : 0;
}

struct nest_root nest_part(struct nest *nest, size_t first, uint64_t start)
{
	struct nest_root *group = &nest->root[first - 1], part = *group;
	uint64_t length = group->end - group->start, taken = group->end - start;

	part.start = start;
	part.dur = share(group->dur, taken, length);
	part.covered = share(group->covered, taken, length);
	part.n = (uint32_t)share(group->n, taken, length);
	part.n += !part.n;
	part.launches = share(group->launches, taken, length);
	part.owed = share(group->owed, taken, length);
	part.tree = 0;
	group->end = start;
	group->dur -= part.dur;
	group->launches -= part.launches;
	group->owed -= part.owed;
	group->covered -= part.covered;
	group->n = group->n > part.n + 1 ? group->n - part.n : 2;
	return part;
}

void nest_put(struct nest *nest, size_t first, const struct nest_root *root)
{
	if (first == nest->room) {
		nest->room = nest->room ? nest->room * 2 : 16;
		nest->root = must_realloc(nest->root, nest->room * sizeof(*nest->root));
	}
	nest->root[first] = *root;
	nest->n = first + 1;
}

/* Gaps by their power of two: without a sort, and half of them is near enough. */
static unsigned int size_of(uint64_t gap)
{
	return gap ? 64 - (unsigned int)__builtin_clzll(gap) : 0;
}

static void join(struct nest_root *into, const struct nest_root *from)
{
	into->end = from->end;
	into->dur += from->dur;
	into->covered += from->covered;
	into->launches += from->launches;
	into->owed += from->owed;
	into->n = into->n + from->n < into->n ? UINT32_MAX : into->n + from->n;
}

/* The size up to which gaps are closed, so that half of them go, and how many of that size. */
static unsigned int limit_of(const struct nest *nest, size_t *of_that_size)
{
	size_t of_size[65] = { 0 }, closed = 0;
	unsigned int size = 0;

	for (size_t i = 0; i + 1 < nest->n; i++)
		of_size[size_of(nest->root[i + 1].start - nest->root[i].end)]++;
	while (closed + of_size[size] < nest->n / 2)
		closed += of_size[size++];
	*of_that_size = nest->n / 2 - closed;
	return size;
}

void nest_bound(struct nest *nest, size_t most, nest_merge_fn *merge, void *ctx)
{
	size_t left, to = 0;
	unsigned int limit;

	if (nest->n < most || nest->n < 4)
		return;
	limit = limit_of(nest, &left);
	for (size_t i = 1; i < nest->n; i++) {
		struct nest_root *into = &nest->root[to], *from = &nest->root[i];
		uint64_t gap = from->start - into->end;
		unsigned int size = size_of(gap);

		if (size > limit || (size == limit && !left)) {
			nest->root[++to] = *from;
			continue;
		}
		left -= size == limit;
		nest->closed = gap > nest->closed ? gap : nest->closed;
		if (merge)
			merge(into, from, ctx);
		join(into, from);
	}
	nest->n = to + 1;
}

void nest_free(struct nest *nest)
{
	free(nest->root);
	*nest = (struct nest){ 0 };
}
