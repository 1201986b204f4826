/* SPDX-License-Identifier: MIT */
#include "hist.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

enum { BLOCKS_MAX = 1 << 18 /* 64 MiB */ };

/* Octave 0 has the values below 32, octave k those of k + 5 bits. */
static unsigned int octave_of(uint64_t ns, unsigned int *bucket)
{
	unsigned int log = ns < HIST_BUCKETS ? 4 : 63 - (unsigned int)__builtin_clzll(ns);

	*bucket = log == 4 ? (unsigned int)ns : (unsigned int)(ns >> (log - 5)) & 31;
	return log - 4;
}

void hist_add(struct hist_pool *pool, struct hist *hist, uint64_t ns)
{
	unsigned int bucket, octave = octave_of(ns, &bucket);

	if (!hist->octave[octave]) {
		if (pool->n == BLOCKS_MAX) {
			hist->incomplete = true;
			return;
		}
		if (pool->n == pool->room) {
			pool->room = pool->room ? pool->room * 2 : 64;
			pool->block = must_realloc(pool->block, pool->room * sizeof(*pool->block));
		}
		memset(pool->block[pool->n], 0, sizeof(*pool->block));
		hist->octave[octave] = (uint32_t)++pool->n;
	}
	pool->block[hist->octave[octave] - 1][bucket]++;
}

static uint64_t middle(unsigned int octave, unsigned int bucket)
{
	uint64_t width = octave ? (uint64_t)1 << (octave - 1) : 1;

	return octave ? (HIST_BUCKETS + bucket) * width + width / 2 : bucket;
}

uint64_t hist_rank(const struct hist_pool *pool, const struct hist *hist, uint64_t n)
{
	uint64_t last = 0;

	for (unsigned int o = 0; o < HIST_OCTAVES; o++)
		for (unsigned int b = 0; hist->octave[o] && b < HIST_BUCKETS; b++) {
			uint64_t in = pool->block[hist->octave[o] - 1][b];

			if (!in)
				continue;
			last = middle(o, b);
			if (n <= in)
				return last;
			n -= in;
		}
	return last;
}

uint64_t hist_from(unsigned int row)
{
	return row ? (uint64_t)1 << (row - 1) : 0;
}

uint64_t hist_in(const struct hist_pool *pool, const struct hist *hist, unsigned int row)
{
	unsigned int from = 0, to = HIST_BUCKETS, octave = row > 5 ? row - 5 : 0;
	uint64_t n = 0;

	if (!octave) {
		from = (unsigned int)hist_from(row);
		to = (unsigned int)hist_from(row + 1);
	}
	for (unsigned int b = from; hist->octave[octave] && b < to; b++)
		n += pool->block[hist->octave[octave] - 1][b];
	return n;
}

void hist_free(struct hist_pool *pool)
{
	free(pool->block);
	*pool = (struct hist_pool){ 0 };
}
