/* SPDX-License-Identifier: MIT */
#include "drive-priv.h"

#include <stdlib.h>
#include "adjust.h"
#include "src/base/must.h"

/* Warm-up and pilot: everything in SHAM, window after window without a pause. */
#define PILOT_WINDOWS 80
#define SHARE_WARMUP  0.10 /* of the budget, at most */

void stage_first(struct drive *drive)
{
	double unit = fmin(fmax((double)drive->cfg.time_ns / 1200, 10e6), 1e9);

	drive->stage = STAGE_WARMUP;
	drive->unit_ns = drive->cfg.runs ? 0 : (uint64_t)unit;
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		drive->treated[i] = true;
	drive_set_step(drive, ARM_SHAM, -1, 0, drive->unit_ns);
}

void stage_warmup(struct drive *drive)
{
	bool late = (double)drive->now_ns > SHARE_WARMUP * (double)drive->cfg.time_ns;
	bool settled = pilot_settled(drive->series, drive->n_series);

	if (!drive->cfg.runs && !late && !settled) {
		if (drive->series[drive->n_series - 1].items < 5 &&
		    drive->unit_ns < drive->cfg.time_ns / 100) {
			drive->unit_ns *= 2;
			drive->n_series = 0;
		}
	} else {
		drive->unsettled = !settled && !drive->cfg.runs;
		drive->stage = STAGE_PILOT;
		drive->n_series = 0;
	}
	drive_set_step(drive, ARM_SHAM, -1, 0, drive->unit_ns);
}

static size_t windows_moved(const struct drive *drive)
{
	size_t moved = 0;

	for (size_t i = 0; i < drive->n_series; i++)
		moved += drive->series[i].items > 0;
	return moved;
}

static bool any_hits(const struct drive *drive)
{
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].hits)
			return true;
	return false;
}

/*
 * Hits per item that are delayed, as one lane feels them: x of a delay of 1 ns. Each target has the
 * lanes of the threads that call it: a function of one thread beside a pool of 16 is felt in full.
 */
static void study_hits(struct drive *drive)
{
	const struct record *rec = &drive->rec;
	double items = 0;

	for (size_t i = 0; i < rec->n; i++)
		items += rec->row[i].win.items;
	for (size_t i = 0; i < drive->cfg.n_targets; i++) {
		struct work *work = &drive->work[i];

		work->felt = (double)work->hits / items * drive_share(drive, -1, i) /
			     fmax(1, (double)drive->cfg.every[i]);
	}
}

void stage_pilot(struct drive *drive)
{
	size_t want = drive->cfg.runs ? 2 : PILOT_WINDOWS;
	bool enough = drive->n_series >= want && windows_moved(drive) >= (want < 8 ? want : 8) &&
		      any_hits(drive);
	bool late = drive->cfg.runs ?
			    drive->n_series >= want :
			    (double)drive->now_ns > SHARE_PILOT * (double)drive->cfg.time_ns;

	if (!enough && !late) {
		drive_set_step(drive, ARM_SHAM, -1, 0, drive->unit_ns);
		return;
	}
	adjust_pilot(drive->series, drive->n_series, drive->cfg.n_adjust);
	pilot_study(drive->series, drive->n_series, &drive->pilot);
	if (!(drive->pilot.t_ns > 0)) {
		drive->dead = true;
		drive_finish(drive);
		return;
	}
	study_hits(drive);
	if (!own_begin(drive))
		stage_next(drive);
}
