/* SPDX-License-Identifier: MIT */
#include "stack.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include "tree-task.h"
#include "src/base/caps.h"

enum {
	LOOKS = 20,	   /* at a running thread */
	BLOCK_WORDS = 512, /* examined words of a control block */
	STACK_LEAST = 4096,
	BLOCK_MOST = 64 << 10 /* from a control block to the end of its mapping */
};

/* The largest size of a stack that is believed. */
#define LEADER_MOST (128ull << 20)
#define THREAD_MOST (1ull << 30)

/* Where the kernel put the process's own stack: field 28 of /proc/TID/stat, 0 if hidden. */
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

/*
 * The offsets are private to the C library and differ between its versions: any two words that
 * could be the bounds are taken for them, and of several the narrowest. glibc has the lower end and
 * the size, the block being part of it; musl the upper end, below the block, and the size.
 */
uint64_t stack_low(const uint64_t *word, size_t n, uint64_t sp, uint64_t block)
{
	uint64_t with = 0, without = 0, low;

	for (size_t i = 0; i + 1 < n; i++) {
		uint64_t first = word[i], size = word[i + 1], end = first + size;

		if (!first || first >= block || size < STACK_LEAST || size > THREAD_MOST)
			continue;
		if (end > block && end - block <= BLOCK_MOST)
			with = first > with ? first : with;
		else if (block - first <= BLOCK_MOST && first > sp && first - size > without)
			without = first - size;
	}
	low = with ? with : without;
	return low <= sp ? low : 0;
}

/*
 * Nearness of the block alone proves nothing: a program's mappings for coroutines lie just below
 * its threads' stacks, too.
 */
static uint64_t block_low(const struct memory *mem, uint64_t block, uint64_t sp)
{
	uint64_t word[BLOCK_WORDS];
	size_t n = memory_peek(mem, block, word, sizeof(word)) / sizeof(*word);

	return n && arch->thread_block(block, word[0]) ? stack_low(word, n, sp, block) : 0;
}

uint16_t stack_bounds_at(const struct memory *mem, const struct arch_regs *regs)
{
	uint64_t word[BLOCK_WORDS], block = arch->thread_pointer(regs), sp = arch->sp(regs);
	size_t n = memory_peek(mem, block, word, sizeof(word)) / sizeof(*word);

	if (n < 3 || !arch->thread_block(block, word[0]) || word[2] != block)
		return 0;
	for (size_t i = 3; i + 1 < n; i++) {
		uint64_t low = word[i], size = word[i + 1], end = low + size;

		if (low && low <= sp && sp < block && size >= STACK_LEAST && size <= THREAD_MOST &&
		    end > block && end - block <= BLOCK_MOST)
			return (uint16_t)(i * sizeof(*word));
	}
	return 0;
}

bool stack_is_own(pid_t tid, const struct memory *mem, const struct arch_regs *regs, uint64_t *low)
{
	uint64_t sp = arch->sp(regs), block = arch->thread_pointer(regs);

	*low = 0;
	if (CAPS(start_of_stack(tid)) - sp < LEADER_MOST)
		return true;
	if (block > sp && block - sp < THREAD_MOST)
		*low = block_low(mem, block, sp);
	return *low;
}

bool stack_write(pid_t tid, const struct memory *mem, uint64_t at, const void *bytes,
		 const void *was, size_t len)
{
	struct iovec ours = { (void *)(uintptr_t)bytes, len };
	struct iovec theirs = { (void *)(uintptr_t)at, len };
	ssize_t n = CAPS(process_vm_writev(tid, &ours, 1, &theirs, 1, 0));

	if (n == (ssize_t)len)
		return true;
	/*
	 * A kernel without CONFIG_CROSS_MEMORY_ATTACH; a target that is not dumpable any more,
	 * whose memory is still open from before.
	 */
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		return memory_write(mem, at, bytes, len, NULL) == 0;
	if (n > 0)
		memory_write(mem, at, was, (size_t)n, NULL);
	return false;
}

/* The stack pointer is the last but one word of /proc/TID/syscall; 0 where the thread runs. */
static uint64_t sleeping_sp(pid_t tid)
{
	char path[64], line[256] = "", *last;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	last = strrchr(line, ' ');
	if (!last)
		return 0;
	*last = '\0';
	last = strrchr(line, ' ');
	return last ? strtoull(last + 1, NULL, 16) : 0;
}

/* A stack that grows has more than is mapped; one that cannot be examined may have more. */
static bool may_have_room(pid_t tid, size_t room)
{
	uint64_t sp = CAPS(sleeping_sp(tid));
	char byte;
	struct iovec ours = { &byte, 1 }, theirs = { NULL, 1 };

	for (int i = 0; !sp && i < LOOKS; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
		sp = CAPS(sleeping_sp(tid));
	}
	theirs.iov_base = (void *)(uintptr_t)(sp - room);
	if (!sp || CAPS(start_of_stack(tid)) - sp < LEADER_MOST)
		return true;
	return CAPS(process_vm_readv(tid, &ours, 1, &theirs, 1, 0)) == 1 || errno != EFAULT;
}

bool stack_has_room(pid_t pid, size_t room)
{
	bool any = false, threads = false;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !any && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0 || task_is_dead(pid, tid))
			continue;
		threads = true;
		any = may_have_room(tid, room);
	}
	if (dir)
		closedir(dir);
	return any || !threads;
}
