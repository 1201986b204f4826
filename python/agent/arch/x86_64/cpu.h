/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_CPU_H
#define SB_AGENT_CPU_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/*
 * The operations that differ between processors. An architecture is a folder beside this one with
 * the same names; the Makefile takes the machine's.
 */

/* The clock of the control page. */
static inline uint64_t cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/*
 * The thread's FS base, which owns slots. Not RDFSBASE: the first word of the thread's control
 * block points to itself in every libc (the ABI of TLS requires it), and may always be read.
 */
static inline uint64_t cpu_thread(void)
{
	uint64_t base;

	__asm__("mov %%fs:0, %0" : "=r"(base));
	return base;
}

static inline void cpu_relax(void)
{
	__builtin_ia32_pause();
}

/*
 * Sleeps for this time as a thread that waits for a lock of libc does, by FUTEX_WAIT for the value
 * 2: sbinject makes no remote call on such a thread. errno stays.
 */
static inline void cpu_nap(int64_t ns)
{
	static const uint32_t two = 2;
	const int64_t timeout[2] = { 0, ns };
	register const int64_t *r10 __asm__("r10") = timeout;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_futex), "D"(&two), "S"(128L), "d"(2L), "r"(r10)
			 : "rcx", "r11", "memory");
}

/* New pages of zeros, private. 0: none left. errno stays. */
static inline uintptr_t cpu_map(size_t size)
{
	register long r10 __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS;
	register long r8 __asm__("r8") = -1;
	register long r9 __asm__("r9") = 0;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_mmap), "D"(0L), "S"(size),
			   "d"((long)(PROT_READ | PROT_WRITE)), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret < 0 && ret > -4096 ? 0 : (uintptr_t)ret;
}

static inline void cpu_unmap(uintptr_t at, size_t size)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"((long)SYS_munmap), "D"(at), "S"(size)
			 : "rcx", "r11", "memory");
}

/* Single instructions, as required of the owner of a slot: see page-abi.h. */
static inline void cpu_add(uint64_t *p, uint64_t n)
{
	__asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(n) : "cc");
}

#endif
