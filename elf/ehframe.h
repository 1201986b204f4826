/* SPDX-License-Identifier: MIT */
#ifndef SB_EHFRAME_H
#define SB_EHFRAME_H

#include "image.h"

/*
 * Functions of a file without symbols, from the unwinder's tables: the sorted .eh_frame_hdr table
 * (start address -> FDE), which every loaded file keeps, and the FDE's own length. Every call
 * checks what it reads; a damaged table gives no answer or a wrong one, never a fault.
 */
struct ehframe {
	const struct image *img;
	uint64_t vaddr;	      /* of .eh_frame_hdr: the table is relative to it */
	const uint8_t *table; /* count pairs of int32: start, FDE; NULL: no usable table */
	uint32_t count;
};

/* hdr_vaddr, size: PT_GNU_EH_FRAME. */
void ehframe_open(struct ehframe *eh, const struct image *img, uint64_t hdr_vaddr, uint64_t size);

/* Entry i. False where its FDE is damaged; *start is set even then. */
bool ehframe_entry(const struct ehframe *eh, uint32_t i, uint64_t *start, uint64_t *end);

/* The number of entries that start at or below vaddr, so the last of them is the one before it. */
uint32_t ehframe_rank(const struct ehframe *eh, uint64_t vaddr);

/*
 * Does an entry begin at vaddr with a frame in place, so that it is no function's beginning but a
 * part of one that lies elsewhere?
 */
bool ehframe_begins_inside(const struct ehframe *eh, uint64_t vaddr);

/* The entry around vaddr. */
bool ehframe_find(const struct ehframe *eh, uint64_t vaddr, uint64_t *start, uint64_t *end);

/* How to find the caller from within the entry around vaddr: two lists of instructions, of which
 * the first applies to all of it. */
struct ehframe_frame {
	uint64_t start, end;
	const uint8_t *cie, *insns;
	size_t n_cie, n_insns; /* bytes */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra; /* the register that stands for the return address */
	bool signal; /* its caller was interrupted by a signal, and has not called it */
};
/* False: there is none, or it is damaged. */
bool ehframe_frame(const struct ehframe *eh, uint64_t vaddr, struct ehframe_frame *frame);

#endif
