/* SPDX-License-Identifier: MIT */
#include "lane.h"

#include <stdbool.h>
#include <stdlib.h>
#include "src/base/must.h"

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

/* For each counter that was hit, the first one of its lane within its role; else n. */
static void first_of_lane(const struct lane *lane, size_t n, const struct lane_count *total,
			  enum lane_mode mode, int role, size_t *first)
{
	for (size_t i = 0; i < n; i++) {
		first[i] = n;
		if (!counted(&lane[i], &total[i], role))
			continue;
		first[i] = i;
		for (size_t j = 0; j < i && first[i] == i; j++)
			if (first[j] == j && lane[j].role == lane[i].role &&
			    same_lane(&lane[i], &lane[j], mode))
				first[i] = j;
	}
}

static size_t replicas(const struct lane *lane, size_t n, const size_t *first, int role)
{
	size_t lanes = 0;

	for (size_t i = 0; i < n; i++)
		lanes += first[i] == i && lane[i].role == role;
	return lanes;
}

size_t lane_weights(const struct lane *lane, size_t n, const struct lane_count *total,
		    enum lane_mode mode, int role, double *w)
{
	size_t lanes = 0, *first = must_calloc(n, sizeof(*first));

	first_of_lane(lane, n, total, mode, role, first);
	for (size_t i = 0; i < n; i++) {
		w[i] = 0;
		if (first[i] == n)
			continue;
		if (mode == LANE_ALL)
			w[i] = lanes = 1;
		else
			w[i] = 1.0 / (double)replicas(lane, n, first, lane[i].role);
		lanes += mode != LANE_ALL && first[i] == i;
	}
	free(first);
	return lanes;
}
