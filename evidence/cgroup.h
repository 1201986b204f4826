/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_CGROUP_H
#define SB_EVIDENCE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What the kernel counts for the control group of a process, and so for all processes in it and
 * below it: of v2, or of v1 for a controller that is mounted so. Pressure is v2's alone.
 */
enum cgroup_counter {
	CGROUP_PERIODS, /* of its quota of processor time */
	CGROUP_THROTTLED_PERIODS,
	CGROUP_THROTTLED, /* ns, added up over the processors */
	CGROUP_CPU_PRESSURE,
	CGROUP_CPU_STALL,
	CGROUP_MEMORY_PRESSURE,
	CGROUP_MEMORY_STALL,
	CGROUP_IO_PRESSURE,
	CGROUP_IO_STALL,
	CGROUP_MEMORY_HIGH, /* events */
	CGROUP_MEMORY_MAX,
	CGROUP_MEMORY_OOM,
	CGROUP_OOM_KILLS,
	CGROUP_FAULTS_MAJOR,
	CGROUP_REFAULTS_ANON, /* pages */
	CGROUP_REFAULTS_FILE,
	CGROUP_SWAP_IN,
	CGROUP_SWAP_OUT,
	CGROUP_MEMORY_CURRENT, /* bytes; these two are as of now, and no sums */
	CGROUP_SWAP_CURRENT,
	CGROUP_COUNTERS
};

/* "cpu_throttled_ns". */
extern const char *const cgroup_names[CGROUP_COUNTERS];

struct cgroup_values {
	uint64_t of[CGROUP_COUNTERS];
	int why[CGROUP_COUNTERS]; /* not 0: it is not known, an errno, or what follows */
};
/* The counter's group is not among those asked for; the file is there and lacks it; v1 does not
 * have it; the process is in no group that is visible here. */
enum { CGROUP_UNASKED = -1, CGROUP_LACKS = -2, CGROUP_OLD = -3, CGROUP_NOWHERE = -4 };

/* The group in which a process is now; counting begins. groups: as struct evidence_config. Never
 * fails: what is not known has a reason. */
struct cgroup;
struct cgroup *cgroup_open(pid_t pid, unsigned int groups);

/* The same of directories: of v2, and of v1 by the controller; NULL: it is not mounted. */
enum cgroup_hierarchy { CGROUP_V2, CGROUP_V1_CPU, CGROUP_V1_MEMORY, CGROUP_HIERARCHIES };
struct cgroup *cgroup_open_at(const char *const dir[CGROUP_HIERARCHIES], unsigned int groups);

void cgroup_close(struct cgroup *g); /* NULL is harmless */

/* Its directory; where v1 has several, separated by ", ". Empty: none is visible here. */
const char *cgroup_path(const struct cgroup *g);

/* What was added since the opening. */
void cgroup_take(const struct cgroup *g, struct cgroup_values *values);

/* Why a counter is not known. Returns buf. */
enum { CGROUP_WHY_SIZE = 192 };
const char *cgroup_unknown(const struct cgroup *g, enum cgroup_counter counter, int why, char *buf,
			   size_t size);

#endif
