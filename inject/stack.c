/* SPDX-License-Identifier: MIT */
#include "stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* What a stack may measure at most to be believed. */
#define LEADER_MOST (128ull << 20)
#define THREAD_MOST (1ull << 30)

/* Where the kernel put the process's own stack: field 28 of /proc/TID/stat, 0 if not told. */
static uint64_t start_of_stack(pid_t tid)
{
	char path[64], line[1024], *at = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f))
		at = strrchr(line, ')');
	fclose(f);
	for (int field = 2; at && field < 28; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

bool stack_is_own(pid_t tid, const struct memory *mem, const struct arch_regs *regs)
{
	uint64_t sp = arch->sp(regs), block = arch->thread_pointer(regs), word = 0;

	if (block > sp && block - sp < THREAD_MOST &&
	    memory_peek(mem, block, &word, sizeof(word)) == sizeof(word) &&
	    arch->thread_block(block, word))
		return true;
	return start_of_stack(tid) - sp < LEADER_MOST;
}

bool stack_write(pid_t tid, const struct memory *mem, uint64_t at, const void *bytes,
		 const void *was, size_t len)
{
	struct iovec ours = { (void *)(uintptr_t)bytes, len };
	struct iovec theirs = { (void *)(uintptr_t)at, len };
	ssize_t n = process_vm_writev(tid, &ours, 1, &theirs, 1, 0);

	if (n == (ssize_t)len)
		return true;
	if (n < 0 && errno == ENOSYS) /* a kernel without CONFIG_CROSS_MEMORY_ATTACH */
		return memory_write(mem, at, bytes, len, NULL) == 0;
	if (n > 0)
		memory_write(mem, at, was, (size_t)n, NULL);
	return false;
}
