/* SPDX-License-Identifier: MIT */
#ifndef SB_SIDES_FUTEX_H
#define SB_SIDES_FUTEX_H

#include "evidence/evidence.h"
#include "src/result/sides.h"

/* Which futexes the threads that call the targets of a sweep wait for: sums over its windows. */
struct sides_futexes;

struct sides_futexes *sides_futexes_open(size_t n_targets);
void sides_futexes_close(struct sides_futexes *f); /* NULL is harmless */

/* A window ends: its last reading. */
void sides_futexes_look(struct sides_futexes *f, const struct evidence *e,
			const struct evidence_reading *r);
/* The growth of a thread in a window, for each target that is treated in it. was: NULL: none. */
void sides_futexes_add(struct sides_futexes *f, const bool *treated,
		       const struct evidence_thread *was, const struct evidence_thread *is);
/* Sets about->futex. last: the last reading. */
void sides_futexes_fill(const struct sides_futexes *f, const struct evidence_reading *last,
			struct sides_about *about);

#endif
