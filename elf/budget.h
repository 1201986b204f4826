/* SPDX-License-Identifier: MIT */
#ifndef SB_BUDGET_H
#define SB_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What may be spent on one file: whoever made it may have made it so that reading it takes forever,
 * and reads happen while others wait. Sizes are limited before anything is read; the limits are
 * several times what the largest programs have. What remains is limited in time, of one image.
 */
#define BUDGET_NS      10000000000ull
#define BUDGET_SECONDS 10

#define BUDGET_SECTIONS (1u << 20)   /* of a file */
#define BUDGET_LOAD	(8ull << 30) /* bytes of a file that are loaded */
#define BUDGET_TEXT	(2ull << 30) /* of these, to execute */
#define BUDGET_SYMBOLS	(1ull << 30) /* bytes of a symbol table, and of a table of relocations */
#define BUDGET_STRINGS	(2ull << 30) /* bytes of a table of names */
#define BUDGET_UNPACKED (1ull << 30) /* bytes that compressed sections say that they unpack to */

struct budget {
	uint64_t spent_ns;
	bool over;
};

/* A stretch of work, which may lie within another one. b: NULL is without limit. */
struct budget_run {
	struct budget *b;
	uint64_t began_ns;
	unsigned int steps;
};

void budget_begin(struct budget_run *run, struct budget *b);
/* To be asked at each step: the clock is read at each 64th only. True: stop. */
bool budget_over(struct budget_run *run);
bool budget_over_now(struct budget_run *run); /* of long steps */
void budget_end(struct budget_run *run);

#endif
