/* SPDX-License-Identifier: MIT */
#ifndef SB_DEVICE_FIND_H
#define SB_DEVICE_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/maps.h"

/* What a process has of CUDA and CUPTI, as seen from outside. Nothing here touches it. */
struct device_found {
	bool cuda;	 /* libcuda.so is mapped */
	char cupti[512]; /* CUPTI's library, a path as the process sees it; "": none is found */
	char why[256];	 /* ... and the reason with the remedy */
	uint64_t loaded; /* where an agent of an earlier session begins; 0: there is none */
};

void device_find(pid_t pid, const struct maps *maps, struct device_found *out);

/*
 * It has the driver's device open that CUDA opens when it is initialized (nvidia-uvm; tools that
 * only ask the driver, as NVML does, do not open it).
 */
bool device_opened(pid_t pid);

/*
 * ... by the descriptor that its parent has, too: it was forked from a process that uses CUDA, and
 * cannot use it itself.
 */
bool device_inherited(pid_t pid);

/*
 * Why the agent cannot enter a process that uses CUDA, with the remedy; NULL: it can. The text is
 * the program's, or in *found.
 */
const char *device_obstacle(pid_t pid, const struct device_found *found);

/* For doctor: 0; negative: no device times, with the reason; 1: it does not use CUDA. */
struct sb_err;
int device_check(pid_t pid, struct sb_err *err);

#endif
