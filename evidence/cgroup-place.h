/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_CGROUP_PLACE_H
#define SB_EVIDENCE_CGROUP_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* A control group, as a directory that this program sees: mount and below, which is empty for the
 * group that is mounted. */
struct cgroup_place {
	char mount[PATH_MAX], below[PATH_MAX];
};

/*
 * The group of a process in the hierarchy of v1 that has a controller ("cpu"), or in that of v2
 * (NULL). False: the process is in no such hierarchy, it is not mounted here, or the group is
 * outside of what is mounted, as the ones outside of a container.
 */
bool cgroup_find(pid_t pid, const char *controller, struct cgroup_place *place);

#endif
