/* SPDX-License-Identifier: MIT */
#ifndef SB_ENTRY_ARCH_H
#define SB_ENTRY_ARCH_H

#include <stdint.h>
#include <sys/syscall.h>

/* The parts of entry.c that C cannot express; all of it is inlined. */
static inline __attribute__((always_inline)) uint64_t entry_clock(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* As arch->thread_pointer() returns it: all C libraries keep it there, too. */
static inline __attribute__((always_inline)) uint64_t entry_thread(void)
{
	uint64_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
}

static inline __attribute__((always_inline)) void entry_relax(void)
{
	__asm__ volatile("pause");
}

/*
 * ppoll() with no descriptors: the only way to sleep in which a stop does not make the kernel write
 * its restart block, which would overwrite that of the interrupted call.
 */
static inline __attribute__((always_inline)) void entry_sleep(int64_t timeout[2])
{
	register uint64_t r10 __asm__("r10") = 0;
	register uint64_t r8 __asm__("r8") = 8;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_ppoll), "D"(0L), "S"(0L), "d"(timeout), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
}

static inline __attribute__((always_inline)) long entry_call(long nr, uint64_t a, uint64_t b,
							     uint64_t c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Identifies the file: device and inode. Not 0: no such descriptor. */
static inline __attribute__((always_inline)) long entry_file(long fd, uint64_t id[2])
{
	uint64_t st[32]; /* struct stat has 144 bytes; the device and inode are its first words */
	long ret;

	st[0] = st[1] = 0; /* the analyzer does not see that the kernel writes them */
	ret = entry_call(SYS_fstat, (uint64_t)fd, (uint64_t)(uintptr_t)st, 0);
	id[0] = ret ? 0 : st[0];
	id[1] = ret ? 0 : st[1];
	return ret;
}

#endif
