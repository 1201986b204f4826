/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TURN_H
#define SB_AGENT_TURN_H

#include <stdbool.h>

/*
 * Free-threaded interpreters only; with a GIL all of this does nothing.
 *
 * Threads take turns to change the agent's data. A thread that waits for its turn is detached from
 * the interpreter meanwhile, so that a garbage collection or a change of sys.monitoring can
 * proceed. Both stop all attached threads, and the holder of the turn may well start one.
 *
 * Data that the hot path reads is published by single stores, and what it may still read is
 * retired, not freed. It never detaches while it reads, so no thread uses anything that was retired
 * before the interpreter has stopped its threads once.
 */

/*
 * False: not obtained within that number of naps of some 0.1 ms. The holder may take it again. It
 * is free in the child of a fork, and when the interpreter ends, since the other threads are gone.
 */
bool turn_take(unsigned naps);
void turn_give(void);
bool turn_mine(void);	/* this thread has it, from a caller further up */
bool turn_nested(void); /* it was taken more than once */

/*
 * Threads that are in the agent's code and detached, or may be: stopping all threads does not prove
 * them gone.
 */
void turn_enter(void);
void turn_leave(void);
bool turn_anyone(void);
void turn_rest(void); /* releases the turn for a moment */

/* mem_free(), once no thread can read it any more. Only the holder of the turn may call it. */
void retire(void *memory);
bool retired_many(void);
void retired_free(void); /* all threads have been stopped since the last retire() */

#endif
