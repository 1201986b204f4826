/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Runnable threads a processor: with fewer of them a turn comes soon enough. */
enum { CROWD = 16 };

static long count_runnable(void)
{
	FILE *f = fopen("/proc/loadavg", "re");
	long n = 0;

	if (f && fscanf(f, "%*s %*s %*s %ld/", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

void crowd_hurry(void)
{
	struct sched_param param = { 0 };

	if (count_runnable() < CROWD * sysconf(_SC_NPROCESSORS_ONLN) ||
	    sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) != 0 ||
	    sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &param) < 0)
		return;
	setpriority(PRIO_PROCESS, 0, -20);
}
