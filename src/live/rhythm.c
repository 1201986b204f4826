/* SPDX-License-Identifier: MIT */
#include "rhythm.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include "src/base/must.h"
#include "sweep/stat.h"

#define JUMPS_SHARE 0.9 /* of the growth comes in jumps */
#define JUMPS_LEAST 3	/* whose scatter says something */
#define APART	    0.5 /* the jumps' scatter by that of the rates */

size_t rhythm_jumps(const struct looks *looks, double *least, double *share)
{
	double most = 0, all = 0, jumps = 0;
	size_t n = 0;

	for (size_t i = 0; i < looks->n; i++) {
		most = fmax(most, looks->grown[i]);
		all += looks->grown[i];
	}
	*least = most / 10;
	for (size_t i = 0; i < looks->n; i++) {
		bool is = most > 0 && looks->grown[i] >= *least;

		n += is;
		jumps += is ? looks->grown[i] : 0;
	}
	*share = all > 0 ? jumps / all : 0;
	return n;
}

static double cv(const double *v, size_t n)
{
	return sqrt(stat_var(v, n)) / stat_mean(v, n);
}

/* The first look has nothing before it. */
static bool sizes_without_time(const struct looks *looks, double least)
{
	double *size = must_calloc(looks->n, sizeof(*size));
	double *rate = must_calloc(looks->n, sizeof(*rate));
	size_t n = 0;
	bool is;

	for (size_t i = 1; i < looks->n; i++) {
		if (looks->grown[i] < least)
			continue;
		size[n] = looks->grown[i];
		rate[n++] = looks->grown[i] / (double)(looks->at_ns[i] - looks->at_ns[i - 1]);
	}
	is = n >= JUMPS_LEAST && n + 1 < looks->n && cv(size, n) < APART * cv(rate, n);
	free(size);
	free(rate);
	return is;
}

void rhythm_find(const struct looks *looks, struct source_rhythm *out)
{
	double least, share;
	size_t n = rhythm_jumps(looks, &least, &share), seen = 0;
	uint64_t first = 0, last = 0;

	if (share < JUMPS_SHARE || (2 * n > looks->n && !sizes_without_time(looks, least)))
		return;
	for (size_t i = 0; i < looks->n; i++) {
		if (!(looks->grown[i] >= least))
			continue;
		last = looks->at_ns[i];
		first = seen++ ? first : last;
	}
	out->period_ns = seen > 1 ? (last - first) / (seen - 1) : last - looks->at_ns[0];
	out->jump = least;
}
