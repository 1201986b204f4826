/* SPDX-License-Identifier: MIT */
#ifndef SB_BUDGET_H
#define SB_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Limits for the work on one file: its author may have made it so that reading it takes forever,
 * and other threads wait meanwhile. Sizes are limited before anything is read; the limits are
 * several times what the largest programs need. The rest is limited in time, per image.
 */
#define BUDGET_NS      10000000000ull
#define BUDGET_SECONDS 10

#define BUDGET_SECTIONS (1u << 20)   /* of a file */
#define BUDGET_LOAD	(8ull << 30) /* bytes of a file that are loaded */
#define BUDGET_TEXT	(2ull << 30) /* of these, to execute */
#define BUDGET_SYMBOLS	(1ull << 30) /* bytes of a symbol table, and of a table of relocations */
#define BUDGET_STRINGS	(2ull << 30) /* bytes of a table of names */
#define BUDGET_UNPACKED (1ull << 30) /* announced unpacked bytes of compressed sections */

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

/* The budget of every file is spent: whatever still reads one ends soon. From any thread. */
void budget_halt(void);
bool budget_halted(void);

void budget_begin(struct budget_run *run, struct budget *b);
/* To be called at each step: it reads the clock at each 64th only. True: stop. */
bool budget_over(struct budget_run *run);
bool budget_over_now(struct budget_run *run); /* of long steps */
void budget_end(struct budget_run *run);

#endif
