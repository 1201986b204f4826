/* SPDX-License-Identifier: MIT */
#ifndef SB_UNWIND_H
#define SB_UNWIND_H

#include "image.h"

/*
 * The caller of a stopped or copied thread, by the unwinder's table of a file (.eh_frame): without
 * frame pointers and without running anything. Registers have DWARF's numbers of x86_64. Of rules
 * that are expressions those of signal frames are followed, and calls by way of the PLT.
 *
 * Every number of the table is data from outside: a damaged table ends a walk or leads to a wrong
 * caller, never to a fault. The reader (reader.h) runs the instructions of the table.
 */
enum {
	UNWIND_RBX = 3,
	UNWIND_RBP = 6,
	UNWIND_RSP = 7,
	UNWIND_R12 = 12,
	UNWIND_PC = 16,
	UNWIND_REGS,
};

struct unwind_regs {
	uint64_t reg[UNWIND_REGS];
	uint32_t known; /* a bit for each register */
	bool called;	/* the pc is a return address: that of the instruction behind the call */
};

/* 8 bytes of the thread's memory; false: they are not there. */
typedef bool unwind_read_fn(void *ctx, uint64_t addr, uint64_t *value);

/*
 * From the registers in a function of this image, loaded at bias, to those in its caller, right
 * after the call. False: the caller is not known.
 */
bool unwind_step(struct image *img, uint64_t bias, struct unwind_regs *regs, unwind_read_fn *read,
		 void *ctx);

/* The same, and why the caller is not known. */
enum unwind_result {
	UNWIND_CALLER,
	UNWIND_SIGNAL,	  /* ... which a signal interrupted here */
	UNWIND_OUTERMOST, /* there is none: a thread or a program begins here */
	UNWIND_NO_TABLE,  /* no table of the file has this place, or its rules are not understood */
	UNWIND_NO_MEMORY, /* what is needed was not read, or a register is not known */
};
enum unwind_result unwind_caller(struct image *img, uint64_t bias, struct unwind_regs *regs,
				 unwind_read_fn *read, void *ctx);

#endif
