/* SPDX-License-Identifier: MIT */
#ifndef SB_EXITS_H
#define SB_EXITS_H

#include "plan.h"

/*
 * The ways out of a function: each `ret`, and each jump to another function (a tail call), which
 * may be conditional: it leaves only where it is taken. So does the end of a function in assembly
 * that runs on into the next one, as glibc's __memcpy_chk() does: a tail call without a jump. A
 * hook at every one of them sees each return of the function once, without a change of return
 * addresses. Not a way out: an exception, longjmp(), and a call that does not return.
 *
 * Pure, as plan.h: bytes and addresses in, addresses out.
 *
 * A function consists of its main part and of parts that the compiler placed elsewhere (`f.cold`).
 * A branch that leaves a part is either a tail call, or leads to another part; only the caller
 * knows the names that tell them apart. Where the destination of a jump is not known, or code runs
 * on behind the function's end into anything but the entry of the next function, the whole function
 * is refused: one missing exit would make every count of it wrong.
 */
struct exits_part {
	uint64_t start, end;
};

enum exits_place {
	EXITS_UNKNOWN,	/* in the middle of other code, or in none */
	EXITS_PART,	/* in a part of the same function: *part is set */
	EXITS_FUNCTION, /* another function begins there */
};
typedef enum exits_place exits_place_fn(void *ctx, uint64_t addr, struct exits_part *part);

struct exits_site {
	uint64_t addr; /* of the last instruction */
	struct exits_part part;
	bool runs_on; /* execution continues at part.end, where another function begins */
};

struct exits {
	struct exits_site *site; /* in no particular order */
	size_t count;
	bool tables;	  /* a switch of the function jumps through a table */
	bool conditional; /* one of them is a conditional jump */
};

/*
 * req: the function at req->func, and its text. Returns PLAN_OK with at least one exit, or a reason
 * with *detail (size bytes; "from 0x1234") and no exit. The caller frees out->site.
 */
enum plan_refusal exits_find(const struct plan_request *req, exits_place_fn *place, void *ctx,
			     struct exits *out, char *detail, size_t size);

#endif
