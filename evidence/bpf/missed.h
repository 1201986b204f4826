/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_EVIDENCE_MISSED_H
#define SB_EVIDENCE_MISSED_H

#include <linux/types.h>

/*
 * A kernel may leave a program out: one that runs already on the processor, or a thread in whose
 * context it runs no programs. Then a switch to a thread, or a wakeup, is missing, and its state
 * would last until the next event. The scheduler keeps the time of both for /proc (schedstat).
 *
 * The moment of a missed event, at one that comes later: `now` is clock `clock` of the run queue,
 * and `stamp` is what the scheduler kept, by that clock; 0: nothing. since: when the state began.
 * What cannot be is `now`: all of the time is the state's.
 */
static __attribute__((always_inline)) inline __u64 missed_at(__u64 now, __u64 clock, __u64 stamp,
							     __u64 since)
{
	__u64 ago = clock - stamp;

	return stamp && stamp <= clock && since <= now && ago <= now - since ? now - ago : now;
}

#endif
