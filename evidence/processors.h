/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_PROCESSORS_H
#define SB_EVIDENCE_PROCESSORS_H

#include <stdbool.h>
#include <stdint.h>

/* Idle states and frequencies of all processors that are online, as sysfs has them. */
struct processors {
	int idle_why; /* of the next two; not 0: not known, an errno */
	uint64_t idle_ns, idle_entries;
	int hz_why;
	uint64_t hz; /* at this moment, the mean */
	int weighted_why;
	/* What the mean over a time is made of: the growth of the first by that of the second. */
	double weighted_hz, weight;
};

/* cpus: "/sys/devices/system/cpu". It takes some microseconds a processor. quick: where there are
 * more than PROCESSORS_QUICK nothing is read, for EAGAIN. */
enum { PROCESSORS_QUICK = 32 };
void processors_read(const char *cpus, bool quick, struct processors *p);

#endif
