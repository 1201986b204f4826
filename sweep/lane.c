// SPDX-License-Identifier: MIT
#include "lane.h"

#include <stdbool.h>

static const char *const mode_names[] = {
	[LANE_PROCESS] = "process",
	[LANE_THREAD] = "thread",
	[LANE_ALL] = "all",
};

const char *lane_mode_name(enum lane_mode mode)
{
	return mode_names[mode];
}

static bool counted(const struct lane *lane, const struct lane_count *total, int role)
{
	return total->hits > 0 && (role < 0 || lane->role == role);
}

static bool same_lane(const struct lane *a, const struct lane *b, enum lane_mode mode)
{
	if (mode == LANE_THREAD)
		return a->thread == b->thread && a->process == b->process;
	return a->process == b->process;
}

/* Lanes of i's role that were hit; *first: i is the first counter of its own lane. */
static size_t replicas(const struct lane *lane, size_t n, const struct lane_count *total,
		       enum lane_mode mode, size_t i, bool *first)
{
	size_t lanes = 0;

	*first = true;
	for (size_t j = 0; j < n; j++) {
		bool seen = false;

		if (!counted(&lane[j], &total[j], lane[i].role))
			continue;
		for (size_t k = 0; k < j && !seen; k++)
			seen = counted(&lane[k], &total[k], lane[i].role) &&
			       same_lane(&lane[j], &lane[k], mode);
		if (seen && j == i)
			*first = false;
		lanes += !seen;
	}
	return lanes;
}

size_t lane_weights(const struct lane *lane, size_t n, const struct lane_count *total,
		    enum lane_mode mode, int role, double *w)
{
	size_t lanes = 0;

	for (size_t i = 0; i < n; i++) {
		bool first;

		w[i] = 0;
		if (!counted(&lane[i], &total[i], role))
			continue;
		if (mode == LANE_ALL) {
			w[i] = 1;
			lanes = 1;
			continue;
		}
		w[i] = 1.0 / (double)replicas(lane, n, total, mode, i, &first);
		lanes += first;
	}
	return lanes;
}
