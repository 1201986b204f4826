/* SPDX-License-Identifier: MIT */
#ifndef SB_SIDES_FUTEX_H
#define SB_SIDES_FUTEX_H

#include "evidence/evidence.h"
#include "src/result/sides.h"
#include "sweep/result.h"

/* Which futexes the threads that call the targets of a sweep wait for: sums over its windows. */
struct sides_futexes;

struct sides_futexes *sides_futexes_open(size_t n_targets);
void sides_futexes_close(struct sides_futexes *f); /* NULL is harmless */

/* A window ends: its last reading. */
void sides_futexes_look(struct sides_futexes *f, const struct evidence *e,
			const struct evidence_reading *r);
/* The window that the next growth is of, by its end (sweep_window.end_ns); treated: as below. */
void sides_futexes_window(struct sides_futexes *f, const bool *treated, uint64_t end_ns);
/* The growth of a thread in a window, for each target that is treated in it. was: NULL: none. */
void sides_futexes_add(struct sides_futexes *f, const bool *treated, enum sweep_side side,
		       const struct evidence_thread *was, const struct evidence_thread *is);
/* Sets about->futex without its changes. last: the last reading. */
void sides_futexes_fill(struct sides_futexes *f, const struct evidence_reading *last,
			struct sides_about *about);
/* ... and these. res: of the whole sweep. */
void sides_futexes_compare(const struct sides_futexes *f, const struct sweep_result *res,
			   struct sides_about *about);

#endif
