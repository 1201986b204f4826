/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_MEMORY_H
#define SB_EVIDENCE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The memory of some processes, added up, from /proc/PID/smaps_rollup. The kernel walks all pages
 * of a process for that, and a call of it that changes its address space waits meanwhile: so this
 * is for the begin and the end of a measurement. Of a process with more than MEMORY_WALK_MOST it is
 * not done: what the kernel counts anyway is taken from /proc/PID/status, and the share is not
 * known.
 */
enum memory_row {
	MEMORY_PROCESSES,
	MEMORY_RSS, /* bytes */
	MEMORY_PSS, /* ... where a page that n processes have is the nth part of one */
	MEMORY_ANONYMOUS,
	MEMORY_SWAP,
	MEMORY_TOOK, /* ns that the reading took */
	MEMORY_ROWS
};

/* "rss_bytes". */
extern const char *const memory_names[MEMORY_ROWS];

#define MEMORY_WALK_MOST (256ull << 20)

struct memory_values {
	uint64_t of[MEMORY_ROWS];
	int why[MEMORY_ROWS]; /* not 0: it is not known, as memory_why() has it */
};
/* Other values are an errno. */
enum {
	MEMORY_UNASKED = -1,
	MEMORY_LATER = -2, /* the command has not begun; it was not read yet */
	MEMORY_ENDED = -3, /* no process is left */
	MEMORY_LARGE = -4,
};

/* proc: "/proc". Processes that have ended are left out; children that vfork(2) made and processes
 * that share their memory count as often as they are named. */
void memory_read(const char *proc, const pid_t *pid, size_t n, struct memory_values *values);
/* All of them, for one reason. */
void memory_unread(int why, struct memory_values *values);

const char *memory_why(int why);

#endif
