/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_SPAN_H
#define SB_AGENT_SPAN_H

#include "agent.h"

/*
 * How long calls take: from the entry of a function to its return, by thread and target. Calls
 * beneath it are included, a call of the same target within it does not count again, and a
 * generator that has yielded does not run. The cost of the timing itself is subtracted: the part in
 * the call's own time, and the whole cost for each timed call beneath.
 *
 * Calls that had begun when the timing was switched on are not timed; their ends are ignored.
 */

/*
 * A call begins, or resumes; its hits are counted already. True: span_leave() must follow. known:
 * only if this thread has called it before: a first call may never return, and is counted as
 * missed.
 */
bool span_enter(const struct watch *w, bool known);
/* It has returned, raised or yielded. */
void span_leave(const struct watch *w);

/* Forgets all calls that are under way. span_epoch() returns another value from then on. */
void span_reset(void);
uint32_t span_epoch(void);

#endif
