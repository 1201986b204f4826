/* SPDX-License-Identifier: MIT */
#include "lane.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"

/* The most is this much above the least: the difference does not matter. */
#define CLEAR	   1.25
#define HANDING_ON 1.5
/* Nearer than this to one lane, or by this share to all: it is that. */
#define NEARLY_ONE 1.15
#define NEAR	   0.1

static const char *const mode_names[] = {
	[LANE_AUTO] = "auto",
	[LANE_PROCESS] = "process",
	[LANE_THREAD] = "thread",
	[LANE_ALL] = "all",
};

const char *lane_mode_name(enum lane_mode mode)
{
	return mode_names[mode];
}

void lane_scan_add(struct lane_scan *to, const struct lane_scan *scan)
{
	to->n += scan->n;
	to->unsteady += scan->unsteady;
	to->surely += scan->surely;
	to->surely2 += scan->surely2;
	to->perhaps += scan->perhaps;
	to->perhaps2 += scan->perhaps2;
}

static bool counted(const struct lane_set *set, size_t i, int role)
{
	return set->total[i].hits > 0 && (role < 0 || set->lane[i].role == role);
}

static bool same_lane(const struct lane *a, const struct lane *b, bool threads)
{
	return a->process == b->process && (!threads || a->thread == b->thread);
}

/* The lanes of a role that were hit, each as long as it lived. */
static double living(const struct lane_set *set, int role, bool threads)
{
	double n = 0;

	for (size_t i = 0; i < set->n; i++) {
		double lived = 0;
		bool first = counted(set, i, role);

		for (size_t k = 0; k < i && first; k++)
			first = !counted(set, k, role) ||
				!same_lane(&set->lane[i], &set->lane[k], threads);
		for (size_t k = i; k < set->n && first; k++)
			if (counted(set, k, role) &&
			    same_lane(&set->lane[i], &set->lane[k], threads))
				lived = fmax(lived, 1 - set->total[k].gone);
		n += lived;
	}
	return fmax(n, 1);
}

/*
 * How many lanes are at work, as one that is at work sees it: the mean over instants, weighted by
 * how many there are. The plain mean would count ranks that wait together as fewer ranks. Where
 * threads change faster than they can be looked at, the plain mean is the least. Fewer than one and
 * a half may be threads that take turns, seen while one hands on to the next.
 */
static void sides(const struct lane_scan *scan, double most, double *least_out, double *most_out)
{
	double least = scan->surely > 0 ? scan->surely2 / scan->surely : 1;
	double all = scan->perhaps > 0 ? scan->perhaps2 / scan->perhaps : 1;

	if (2 * scan->unsteady > scan->n)
		least = fmin(least, scan->surely / scan->n);
	if (least < HANDING_ON)
		least = 1;
	*least_out = fmin(fmax(least, 1), most);
	*most_out = fmin(fmax(all, 1), most);
}

static double settled(double n, double all)
{
	if (n < NEARLY_ONE)
		return 1;
	return n > all * (1 - NEAR) ? all : n;
}

/* Of `lanes` side by side, those that one event passes at the same time. */
static double passed(const struct lane_set *set, enum lane_mode mode, int role, double lanes)
{
	double hits = 0, processes = fmin(living(set, role, false), lanes);

	for (size_t i = 0; i < set->n; i++)
		hits += set->lane[i].role == role ? (double)set->total[i].hits : 0;
	if (hits < lanes * set->events * (1 - NEAR) || mode == LANE_LEAST)
		return 1;
	return mode == LANE_MOST ? lanes : processes;
}

/* The lanes of a role that are side by side. */
static double beside(const struct lane_set *set, enum lane_mode mode, int role)
{
	double processes = living(set, role, false), threads = living(set, role, true);
	double least = processes, most = threads;
	bool seen = (size_t)role < set->n_scans && set->scan[role].n >= LANE_SCANS;

	if (mode == LANE_ALL)
		return 1;
	if (mode == LANE_PROCESS)
		return processes;
	if (mode == LANE_THREAD)
		return threads;
	if (seen && threads > 1)
		sides(&set->scan[role], threads, &least, &most);
	if (most <= least * CLEAR)
		return settled(sqrt(least * most), threads);
	if (mode == LANE_LEAST)
		return least;
	return mode == LANE_MOST ? most : fmin(fmax(processes, least), most);
}

static bool measured(enum lane_mode mode)
{
	return mode == LANE_AUTO || mode == LANE_LEAST || mode == LANE_MOST;
}

double lane_weights(const struct lane_set *set, enum lane_mode mode, int role, double *w)
{
	double lanes = 0, *n;
	int roles = 0;

	for (size_t i = 0; i < set->n; i++)
		roles = set->lane[i].role >= roles ? set->lane[i].role + 1 : roles;
	n = must_calloc((size_t)roles, sizeof(*n));
	for (size_t i = 0; i < set->n; i++) {
		double *of = &n[set->lane[i].role];

		w[i] = 0;
		if (!counted(set, i, role))
			continue;
		if (*of == 0) {
			*of = beside(set, mode, set->lane[i].role);
			if (set->events > 0 && measured(mode))
				*of = passed(set, mode, set->lane[i].role, *of);
			lanes += *of;
		}
		w[i] = 1 / *of;
	}
	free(n);
	return mode == LANE_ALL ? fmin(lanes, 1) : lanes;
}
