/* SPDX-License-Identifier: MIT */
#ifndef SB_MIMIC_H
#define SB_MIMIC_H

#include <stdint.h>
#include "memory.h"
#include "src/base/maps.h"

/*
 * A mimic runs a small function of a process without that process: a child of ours, emptied of
 * its own memory, in which the target's pages appear as copies when they are touched. What
 * runs there reads what the target would read and changes nothing of it; the target is neither
 * stopped nor traced, and nothing can be left behind in it, whoever is killed.
 *
 * It is made for IFUNC resolvers, which look at the processor and answer with an address. What
 * needs the kernel is not for it: a system call ends the attempt, as do a fault that the target
 * would have had too, and half a second.
 *
 * mimic_open() starts nothing; the first call does. Copies and what was written to them last
 * until mimic_close(), so all calls see one state.
 */
struct mimic;

/* mem and maps are the target's, and outlive the mimic. */
struct mimic *mimic_open(const struct memory *mem, const struct maps *maps);
void mimic_close(struct mimic *mimic); /* harmless on NULL */

/* *result: what the function returned. SB_ETARGET with the reason where it did not. */
int mimic_call(struct mimic *mimic, uint64_t function, uint64_t *result, struct sb_err *err);

#endif
