/* SPDX-License-Identifier: MIT */
#ifndef SB_SIDES_H
#define SB_SIDES_H

#include "read.h"
#include "src/result/sides.h"

/*
 * The evidence of a live sweep: read around each window, and split into the threads that call a
 * treated target and all others. No process is stopped for it.
 */
struct sides;

/* NULL: there is none; job->sides has the reason. Asks the session for its processes. */
struct sides *sides_open(struct sweep_job *job, struct sweep_reader *reader);
/* After the last window: nothing runs in the kernel from here on. NULL is harmless, here and below.
 */
void sides_stop(struct sides *s);
/* Fills in what job->sides does not have yet. res: of the sweep. */
void sides_close(struct sides *s, const struct sweep_result *res);

/* Before the first edge of a window, and after its last one. */
void sides_begin(struct sides *s);
void sides_end(struct sides *s);

/* The next calls of sides_between() are of the window that ended then (sweep_window.end_ns). */
void sides_window(struct sides *s, uint64_t end_ns);

/*
 * The growth between the two, as time_ns of it, for drive_take(). A thread is on the delayed side
 * from its first call of a treated target on; where the thread of a call is not known, all of its
 * process are. treated: the flags of drive_treated() or drive_part_treated(). `shared`: more
 * targets than one, each of which is asked for alone too; futexes are counted there. `last`: the
 * counters of the session at the end of the window. The caller frees. NULL: nothing was read.
 */
double *sides_between(struct sides *s, const bool *treated, bool shared,
		      const struct sweep_reading *last, uint64_t time_ns);

#endif
