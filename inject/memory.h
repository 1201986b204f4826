/* SPDX-License-Identifier: MIT */
#ifndef SB_MEMORY_H
#define SB_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <stdbool.h>
#include "src/base/err.h"

/*
 * A target's memory through /proc/PID/mem: the only interface that writes to read-only pages
 * (process_vm_writev does not). No thread needs to be stopped, but a caller that writes text must
 * ensure that no thread runs it.
 *
 * A write within one page is all or nothing, even if the writer is killed; across pages a kill can
 * cut it in two. The descriptor stays with the address space it was opened for: after an exec,
 * reads and writes find nothing, and a new descriptor is needed.
 */
struct memory {
	int fd;
	pid_t pid;
};

int memory_open(struct memory *mem, pid_t pid, struct sb_err *err);
void memory_close(struct memory *mem); /* harmless on a closed or zeroed one with fd -1 */

/* The process has ended or has executed another program: its old memory no longer exists. */
bool memory_gone(const struct memory *mem);
int memory_err_gone(pid_t pid, struct sb_err *err); /* fills err: SB_ENOPROC */

/* All len bytes, or an error (SB_ETARGET with the address). */
int memory_write(const struct memory *mem, uint64_t addr, const void *buf, size_t len,
		 struct sb_err *err);

/* As many bytes as can be read, 0 where nothing is mapped. */
size_t memory_peek(const struct memory *mem, uint64_t addr, void *buf, size_t len);

#endif
