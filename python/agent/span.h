/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_SPAN_H
#define SB_AGENT_SPAN_H

#include "agent.h"

/*
 * How long calls take: from the entry of a function to its return, by thread and target. What is
 * called meanwhile belongs to it, a call of the same target within it does not count again, and a
 * generator that has yielded does not run. What the timing itself costs is taken off: what falls
 * into the call's own time, and the whole of it for each timed call beneath.
 *
 * Calls that had begun when the timing was switched on are not timed; their ends are nobody's.
 */

/*
 * A call begins, or goes on; its hits are counted already. True: span_leave() is due. known:
 * only if this thread has called it before: a first call may be one that never returns, and is
 * counted as missed.
 */
bool span_enter(const struct watch *w, bool known);
/* It has returned, raised or yielded. */
void span_leave(const struct watch *w);

/* Forgets all calls that are under way. What span_epoch() returns is another one from then on. */
void span_reset(void);
uint32_t span_epoch(void);

#endif
