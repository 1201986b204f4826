/* SPDX-License-Identifier: MIT */
#include "drive-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

/*
 * The targets' own time: a few windows between the pilot and the first delay, hooked and not
 * delayed, in which calls are timed from entry to return. That costs the program some time, so it
 * is done here and never together with a delay.
 */
#define OWN_WINDOWS 12
#define OWN_RUNS    3	 /* whole runs are expensive */
#define OWN_TRIES   2	 /* times as many: windows without a result are repeated */
#define SHARE_OWN   0.05 /* of the budget, at most */
#define OWN_MISSED  0.05 /* of the calls may be untimed */
#define GUARD_ITEMS 20

static bool wanted(const struct drive *drive, size_t target)
{
	return drive->cfg.can_time[target] && drive_has_row(drive, target) &&
	       drive->work[target].felt > 0;
}

static bool any_wanted(const struct drive *drive)
{
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (wanted(drive, i))
			return true;
	return false;
}

static size_t windows_wanted(const struct drive *drive)
{
	double periods = SHARE_OWN * (double)drive->cfg.time_ns / drive->pilot.period_ns;

	if (drive->cfg.runs)
		return OWN_RUNS;
	/* An aligned window takes a period at least. */
	if (drive->cfg.aligned && periods < OWN_WINDOWS)
		return (size_t)fmax(OWN_RUNS, periods);
	return OWN_WINDOWS;
}

static void own_step(struct drive *drive)
{
	double window = SHARE_OWN / OWN_WINDOWS * (double)drive->cfg.time_ns;

	drive_set_step(drive, ARM_SHAM, -1, 0, (uint64_t)fmin(window, 1e9));
	if (!drive->own_asked) /* calls that had begun before leave the pipeline */
		drive->step.guard_ns = (uint64_t)fmin(window, GUARD_ITEMS * drive->pilot.t_ns);
	drive->own_asked++;
}

bool own_begin(struct drive *drive)
{
	if (!any_wanted(drive))
		return false;
	drive->stage = STAGE_OWN;
	own_step(drive);
	return true;
}

void own_take(struct drive *drive, const struct drive_window *window)
{
	double events = drive->cfg.response ? window->response_count : window->items;
	struct own_window *to;

	if (!window->own)
		return;
	drive->own = must_realloc(drive->own,
				  (drive->n_own + 1) * drive->cfg.n_targets * sizeof(*drive->own));
	to = &drive->own[drive->n_own++ * drive->cfg.n_targets];
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		to[i] = (struct own_window){ .items = events, .own = window->own[i] };
}

bool own_next(struct drive *drive)
{
	size_t want = windows_wanted(drive);

	if (drive->n_own < want && drive->own_asked < OWN_TRIES * want) {
		own_step(drive);
		return true;
	}
	own_study(drive);
	return false;
}

static const struct own_window *window_of(const struct drive *drive, size_t window, size_t target)
{
	return &drive->own[window * drive->cfg.n_targets + target];
}

static struct own_window sum_of(const struct drive *drive, size_t target)
{
	struct own_window sum = { 0 };

	for (size_t i = 0; i < drive->n_own; i++) {
		const struct own_window *win = window_of(drive, i, target);

		sum.items += win->items;
		sum.own.ns += win->own.ns;
		sum.own.calls += win->own.calls;
		sum.own.missed += win->own.missed;
	}
	return sum;
}

/* The ratio of two sums over windows, and a t interval by its linearised variance. */
static struct sweep_estimate ratio(const struct drive *drive, size_t target,
				   const struct own_window *sum)
{
	double n = (double)drive->n_own, r = sum->own.ns / sum->items, squares = 0, half;

	for (size_t i = 0; i < drive->n_own; i++) {
		const struct own_window *win = window_of(drive, i, target);
		double e = win->own.ns - r * win->items;

		squares += e * e;
	}
	if (drive->n_own < 2)
		return (struct sweep_estimate){ r, NAN, NAN };
	half = stat_t_quantile(0.975, n - 1) * sqrt(squares * n / (n - 1)) / sum->items;
	return (struct sweep_estimate){ r, fmax(0, r - half), r + half };
}

static void study(struct drive *drive, size_t target)
{
	struct own_window sum = sum_of(drive, target);
	double all = sum.own.calls + sum.own.missed;
	struct work *work = &drive->work[target];

	if (!drive->n_own || !(sum.items > 0)) {
		drive_own_why(drive, target, "timing its calls did not begin in time");
	} else if (!(all > 0)) {
		drive_own_why(drive, target,
			      "no call of it began and ended while calls were timed");
	} else if (sum.own.missed > OWN_MISSED * all) {
		snprintf(work->own_why, sizeof(work->own_why),
			 "%.0f %% of its calls could not be timed (sbinject list TARGET time=yes "
			 "shows the functions that cannot; in Python before 3.12 a thread's first "
			 "call of a function is not)",
			 100 * sum.own.missed / all);
	} else {
		work->own_ns = ratio(drive, target, &sum);
	}
}

void own_study(struct drive *drive)
{
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (wanted(drive, i))
			study(drive, i);
}
