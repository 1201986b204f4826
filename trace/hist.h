/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_HIST_H
#define SB_TRACE_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Histograms of durations, 32 buckets for each power of two: a quantile is off by 3 % at most. The
 * buckets of all histograms are in one pool of bounded size; where that is full, a histogram no
 * longer holds everything and its quantiles are unknown.
 */
enum { HIST_OCTAVES = 60, HIST_BUCKETS = 32 };

struct hist_pool {
	uint64_t (*block)[HIST_BUCKETS];
	size_t n, room;
};

struct hist {
	uint32_t octave[HIST_OCTAVES]; /* number of the block, from 1; 0: none */
	bool incomplete;
};

void hist_add(struct hist_pool *pool, struct hist *hist, uint64_t ns);
/* The smallest duration that so many have or stay under; n is from 1. Within the histogram's
 * bucket, in its middle. */
uint64_t hist_rank(const struct hist_pool *pool, const struct hist *hist, uint64_t n);
/* By powers of two: row 0 has durations of 0, row k those from 2^(k - 1) to below 2^k. Exact,
 * unless the histogram is incomplete. */
enum { HIST_ROWS = HIST_OCTAVES + 5 };
uint64_t hist_in(const struct hist_pool *pool, const struct hist *hist, unsigned int row);
/* The smallest duration of a row, row up to HIST_ROWS. */
uint64_t hist_from(unsigned int row);
void hist_free(struct hist_pool *pool);

#endif
