/* SPDX-License-Identifier: MIT */
#ifndef SB_UNWIND_RULES_H
#define SB_UNWIND_RULES_H

#include "unwind.h"

/*
 * What the unwinder's table of a file says of one place: where the caller's registers are. Without
 * pointers, since it comes from the reader (reader.h).
 */
enum unwind_kind {
	UNWIND_SAME,
	UNWIND_AT, /* at the CFA plus the offset */
	UNWIND_UNKNOWN,
	UNWIND_NONE,	   /* DW_CFA_undefined: of the return address, there is no caller */
	UNWIND_EXPR_AT,	   /* at the place that an expression gives */
	UNWIND_EXPR_VALUE, /* it is what an expression gives */
	UNWIND_KINDS,
};

/* Those of signal frames and of PLTs are shorter. */
struct unwind_expr {
	uint8_t size, byte[23];
};

struct unwind_rules {
	uint8_t signal; /* its caller was interrupted by a signal, and has not called it */
	uint32_t cfa_reg;
	int64_t cfa_offset;
	struct unwind_expr cfa_expr; /* size 0: the register and the offset */
	struct unwind_rule {
		uint8_t kind; /* enum unwind_kind */
		int64_t offset;
		struct unwind_expr expr;
	} rule[UNWIND_REGS];
};

/* By the reader. False: no table of the file has the place, or its rules are not understood. */
bool unwind_rules(struct image *img, uint64_t vaddr, struct unwind_rules *out);

#endif
