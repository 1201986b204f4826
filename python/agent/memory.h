/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_MEMORY_H
#define SB_AGENT_MEMORY_H

#include <stddef.h>

/*
 * Memory for what the agent keeps of each function, of the agent's own, from the kernel. With the
 * program's malloc() a detach frees a hundred thousand small blocks, and the next free() of a large
 * one puts all of them together at once, which holds the GIL for 10 ms; and malloc() may itself be
 * a target with a delay.
 *
 * Only the holder of the GIL, or of the turn (turn.h), may call these. A child of a fork in the
 * middle of a call gets new memory, and frees nothing that is older.
 */

/* Zeroed, aligned to 16 bytes, or to 64 from MEM_LARGE bytes on. NULL: none left. */
#define MEM_LARGE ((size_t)1024)

void *mem_new(size_t size);
void mem_free(void *memory); /* may be NULL */

/* At the end, when all has been freed: returns to the kernel what was kept for later. */
void mem_close(void);

#endif
