/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <math.h>
#include <stdio.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

struct sweep_load_ticks sweep_load_read(void)
{
	struct sweep_load_ticks t = { NAN, NAN, NAN };
	unsigned long long v[FIELDS] = { 0 };
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return t;
	/* Time of unrecorded is in user and nice already. */
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[USER], &v[NICE], &v[SYSTEM],
		   &v[IDLE], &v[IOWAIT], &v[IRQ], &v[SOFTIRQ], &v[STEAL]) == FIELDS) {
		t = (struct sweep_load_ticks){ 0, (double)(v[IDLE] + v[IOWAIT]), (double)v[STEAL] };
		for (int i = 0; i < FIELDS; i++)
			t.all += (double)v[i];
	}
	fclose(f);
	return t;
}

/* The kernel's sums of idle time may go back a little. */
static double share(double part, double all)
{
	return all > 0 && !isnan(part) ? fmin(fmax(part / all, 0), 1) : NAN;
}

void sweep_load_between(struct sweep_load_ticks a, struct sweep_load_ticks b, double *busy,
			double *steal)
{
	double all = b.all - a.all;

	*busy = share(all - (b.idle - a.idle), all);
	*steal = share(b.steal - a.steal, all);
}
