/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TURN_H
#define SB_AGENT_TURN_H

#include <stdbool.h>

/*
 * Free-threaded interpreters only; with a GIL all of this does nothing.
 *
 * What changes the agent's knowledge does so in turn. Whoever waits for its turn is detached from
 * the interpreter meanwhile, and so can be waited for by a garbage collection or a change of
 * sys.monitoring, both of which stop all attached threads and may well be asked for by the holder.
 *
 * What the hot path reads is published by single stores, and what it may still look at is retired,
 * not freed. It never detaches while it looks, so all that was retired before the interpreter
 * stopped its threads once is nobody's after that.
 */

/*
 * False: not had in the time given, in naps of some 0.1 ms. A thread that has it may take it
 * again. In the child of a fork nobody has it, nor when the interpreter ends, where the others
 * are gone.
 */
bool turn_take(unsigned naps);
void turn_give(void);
bool turn_mine(void);	/* this thread has it, in a call further up */
bool turn_nested(void); /* it was taken more than once */

/*
 * Threads that are in the agent's code and detached, or may be: stopping all does not prove them
 * gone.
 */
void turn_enter(void);
void turn_leave(void);
bool turn_anyone(void);
void turn_rest(void); /* lets go of the turn for a moment */

/* free(), when nobody can look at it any more. To be called by whoever has the turn. */
void retire(void *memory);
bool retired_many(void);
void retired_free(void); /* all threads have been stopped since the last retire() */

#endif
