/* SPDX-License-Identifier: MIT */
#ifndef SB_CANDIDATES_INFER_H
#define SB_CANDIDATES_INFER_H

#include <stddef.h>
#include <stdint.h>
#include "sweep/ratio.h"

/* Samples of one function, by block of time. */
struct candidate_tally {
	size_t function;
	double *in; /* blocks long: samples with the function innermost */
	uint64_t samples;
	struct ratio share; /* filled by candidates_rank() */
};

/*
 * Pure: the share of all samples that each function has, and the order by it, largest first. The
 * interval is the wider one of two: the scatter between blocks, and that of so many independent
 * samples. Returns how many have at least 1 % and 5 samples; these come first.
 */
size_t candidates_rank(struct candidate_tally *tally, size_t n, const double *all, size_t blocks);

/* A word for a shell, in quotes where it needs them. The caller frees. */
char *candidates_word(const char *text);

#endif
