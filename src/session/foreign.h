/* SPDX-License-Identifier: MIT */
#ifndef SB_FOREIGN_H
#define SB_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The kernel uprobes that other tools have put into files: perf, bpftrace, continuous profilers.
 * Only those that the kernel names are seen: uprobes of BPF programs (Linux 6.6 and later) and
 * those in tracefs. perf enables the latter by perf_event_open(), which tracefs does not show: of
 * an event that is off there, the breakpoint in the process decides. A uprobe that exists by
 * perf_event_open() alone is not seen. Reading them needs root; nothing is changed.
 */
struct foreign_probe {
	char path[4096]; /* the file, as its tool named it */
	uint64_t dev, inode;
	pid_t pid;     /* a process that holds it; 0: unknown */
	char name[32]; /* name of that process, printable; or "tracefs", "a pinned BPF link" */
	size_t places; /* places in that file by that process */
	bool off;      /* tracefs shows it as off; offset: its place in the file */
	uint64_t offset;
};

struct foreign {
	struct foreign_probe *probe;
	size_t n;
};

/* Uprobes of the calling process are left out. Free *out with foreign_free(). */
void foreign_read(struct foreign *out);
void foreign_free(struct foreign *foreign);

/* Is the uprobe in that file? path: as process `pid` (0: the caller) sees it. One that tracefs
 * shows as off must have its breakpoint in that process. */
bool foreign_is_in(const struct foreign_probe *probe, pid_t pid, const char *path);

/* Does the process map that file as code? */
bool foreign_is_mapped(const struct foreign_probe *probe, pid_t pid);

/* "bpftrace (pid 4711)" */
void foreign_holder(const struct foreign_probe *probe, char *buf, size_t size);
/* "bpftrace (pid 4711): /usr/lib/libc.so.6, 2 places" */
void foreign_text(const struct foreign_probe *probe, char *buf, size_t size);

#endif
