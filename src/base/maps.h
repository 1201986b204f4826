/* SPDX-License-Identifier: MIT */
#ifndef SB_MAPS_H
#define SB_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "err.h"

/*
 * The memory map of a process, read once from /proc/PID/maps. It is a snapshot and never changes.
 * Entries are sorted by address, as the kernel prints them. Paths are as the target sees them (its
 * mount namespace); the suffix " (deleted)" is removed and recorded in `deleted`.
 */
struct map_entry {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* file offset of start, bytes */
	uint64_t inode;
	uint32_t dev; /* major << 20 | minor */
	bool r, w, x, shared, deleted;
	const char *path; /* "" for anonymous memory, "[stack]", "/lib/..."; never NULL */
};

struct maps {
	struct map_entry *entry;
	size_t count;
	char *text; /* backing store of the paths */
};

/*
 * The thread through which /proc shows the memory, the root and the descriptors of a process: its
 * leader, or another thread if the leader has ended (pthread_exit in main). Returns pid itself if
 * no thread has memory.
 */
pid_t maps_face(pid_t pid);

/* Reads /proc/PID/maps. A process without memory (zombie, kernel thread) gives count 0 and returns
 * 0. */
int maps_read(pid_t pid, struct maps *maps, struct sb_err *err);

/* As maps_read(), from text in the same format (tests, fuzzing). The text is copied. */
int maps_parse(const char *text, size_t len, struct maps *maps, struct sb_err *err);

void maps_free(struct maps *maps); /* leaves *maps zeroed; harmless on a zeroed struct */

/* The entry that holds addr, or NULL. */
const struct map_entry *maps_find(const struct maps *maps, uint64_t addr);

/*
 * A page-aligned hole of len bytes, wholly inside [lo, hi) and as near to `near` as possible, at
 * least 64 KiB away from a growing stack and above mmap_min_addr. Returns 0 if there is none.
 */
uint64_t maps_find_gap(const struct maps *maps, uint64_t near, uint64_t lo, uint64_t hi,
		       uint64_t len);

#endif
