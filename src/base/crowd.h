/* SPDX-License-Identifier: MIT */
#ifndef SB_CROWD_H
#define SB_CROWD_H

/*
 * Where many more threads are runnable than there are processors, gives this process the highest
 * ordinary priority, if it is permitted to and has the default one. Its work before an attach, 50
 * ms of it, would otherwise take half a minute beside a thousand busy threads, and each event of
 * the target, which a thread of it waits for, a second. No child inherits the priority.
 */
void crowd_hurry(void);

#endif
