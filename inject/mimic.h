/* SPDX-License-Identifier: MIT */
#ifndef SB_MIMIC_H
#define SB_MIMIC_H

#include <stdint.h>
#include "memory.h"
#include "src/base/maps.h"

/*
 * A mimic runs a small function of a process outside that process: in a child of sbinject, emptied
 * of its own memory, where the target's pages appear as copies when they are touched. The function
 * reads the same values as in the target and changes nothing in the target. The target is neither
 * stopped nor traced, and nothing can remain in it, even if a process is killed.
 *
 * It is made for IFUNC resolvers, which examine the processor and return an address. It does not
 * support functions that need the kernel: a system call ends the attempt, and so do a fault that
 * the target would have had too, and half a second of running time.
 *
 * mimic_open() starts no process; the first call does. Copies, and writes to them, last until
 * mimic_close(), so all calls see one state.
 */
struct mimic;

/* mem and maps are the target's, and must outlive the mimic. */
struct mimic *mimic_open(const struct memory *mem, const struct maps *maps);
void mimic_close(struct mimic *mimic); /* harmless on NULL */

/* *result: what the function returned. SB_ETARGET with the reason where it did not return. */
int mimic_call(struct mimic *mimic, uint64_t function, uint64_t *result, struct sb_err *err);

#endif
