/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_FIND_H
#define SB_OUT_FIND_H

#include <stdio.h>
#include "src/result/explain.h"
#include "src/result/find.h"

/* Writers of `sbinject find`. */
enum { FIND_STEPS = 3, FIND_SWEPT_MOST = 4, FIND_NEXT_MOST = FIND_SWEPT_MOST + 3 };

/* A command that goes on where find ended. */
struct out_find_next {
	const char *why; /* what it is for */
	char *command;
};

struct out_find {
	int argc;
	char **argv;
	char *command[FIND_STEPS];	      /* each step alone: explain, the count, sweep; NULL */
	const struct explain_result *explain; /* NULL: not reached */
	const struct find_rates *rates;	      /* NULL: not reached */
	const char *progress;		      /* NULL: none */
	bool given;			      /* ... by the user */
	bool is_call;			      /* ... it is a function */
	const char *sweep;		      /* the document of the sweep; NULL: there is none */
	const char *why;		      /* ... for this reason */
	struct out_find_next next[FIND_NEXT_MOST];
	size_t n_next;
	bool ended_early;
};

/* What is done next, and the command that does it alone. */
void out_find_step(FILE *to, int step, const char *title, const char *command);

/* Calls a second of the candidates, how steady they are, and what is proposed. */
void out_find_rates(FILE *to, const struct find_rates *rates);

/* The answer: what limits the program, what would bring how much, what does not matter. */
void out_find_page(FILE *to, const struct out_find *find);

/* Schema "sbinject.find/1" (sbinject-find(1)); path "-": stdout. */
int out_find_json(const char *path, const struct out_find *find, struct sb_err *err);

#endif
