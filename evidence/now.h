/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_NOW_H
#define SB_EVIDENCE_NOW_H

#include <stdint.h>
#include <time.h>

/* The clock of bpf_ktime_get_ns(), in ns. */
static inline uint64_t evidence_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
