/* SPDX-License-Identifier: MIT */
#ifndef SB_SIDES_WINDOWS_H
#define SB_SIDES_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/result/sides.h"
#include "sweep/result.h"

/* The waits for each futex in each window of a sweep, and what a delay changes of them. Pure. */
struct sides_windows;

struct sides_windows *sides_windows_open(void);
void sides_windows_close(struct sides_windows *w); /* NULL is harmless */

/* What is added from here on is of the window that ended then, as sweep_window.end_ns. Windows come
 * in the order of time. */
void sides_windows_begin(struct sides_windows *w, uint64_t end_ns);
/* The window was read for this target: of a futex without a wait it has 0. */
void sides_windows_read(struct sides_windows *w, size_t target);
void sides_windows_add(struct sides_windows *w, size_t target, enum sweep_side side, size_t number,
		       double ns);

/*
 * Sets the changes of about->futex: per item, at the largest dose less SHAM within the blocks of
 * the experiment that has most windows of the target, with the intervals of kappa's contrasts
 * (sweep/infer.h) and Holm's correction over all of them. The sum over the futexes of a target
 * counts as much of the lanes as its futex_ns does.
 */
void sides_windows_compare(const struct sides_windows *w, const struct sweep_result *res,
			   struct sides_about *about);

#endif
