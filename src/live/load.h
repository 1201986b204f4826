/* SPDX-License-Identifier: MIT */
#ifndef SB_LIVE_LOAD_H
#define SB_LIVE_LOAD_H

/* How the time of all processors of this machine is spent, by /proc/stat, in ticks since boot. */
struct sweep_load_ticks {
	double all, idle, steal; /* NAN: not known */
};

struct sweep_load_ticks sweep_load_read(void);

/* Shares of the time between two readings: not idle, and taken by the host of a virtual machine;
 * NAN: not known. */
void sweep_load_between(struct sweep_load_ticks a, struct sweep_load_ticks b, double *busy,
			double *steal);

#endif
