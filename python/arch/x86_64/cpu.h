/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_CPU_H
#define SB_AGENT_CPU_H

#include <stdint.h>

/*
 * What the agent asks of the processor. An architecture is a folder beside this one with the
 * same names; the Makefile takes the machine's.
 */

/* The clock of the control page. */
static inline uint64_t cpu_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/*
 * The thread's FS base, which owns slots. Not RDFSBASE: the first word of the thread's control
 * block points to itself in every libc (the ABI of TLS asks for it), and may always be read.
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

/* Single instructions, as the owner of a slot must: see page-abi.h. */
static inline void cpu_add(uint64_t *p, uint64_t n)
{
	__asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(n) : "cc");
}

#endif
