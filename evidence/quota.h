/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_QUOTA_H
#define SB_EVIDENCE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * How often the control groups of some processes used up their quota of processor time, from the
 * cpu.stat of each group and those above it (cgroup v2, or the cpu controller of v1). A group that
 * is not visible here, as the ones outside of a container, is not known.
 */
struct quota;

struct quota_use {
	char *group; /* its directory; the caller frees */
	uint64_t periods, used_up;
	uint64_t ns; /* for which it had no processor, added up over the processors */
};

struct quota *quota_open(const pid_t *pid, size_t n);
void quota_close(struct quota *q); /* NULL is harmless */

/* Since it was opened: of the group that used up its quota most often. False: none did. */
bool quota_take(const struct quota *q, struct quota_use *use);

#endif
