/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_HEADLINE_H
#define SB_OUT_SWEEP_HEADLINE_H

#include "sweep.h"

/*
 * The answer of a sweep in sentences: what limits the program, what there is to win, what does not
 * matter, what is not known. It follows from the verdicts alone, so that it never says more than
 * they prove; the first sentence stands for the whole. Names are in it as they are, any byte.
 */
enum { OUT_HEADLINES = 10 };
struct out_headline {
	char *line[OUT_HEADLINES];
	size_t n;
};

void out_sweep_headline(const struct sweep_result *res, const struct out_sweep_about *about,
			struct out_headline *out);
void out_headline_free(struct out_headline *headline);

/* "item", "response" or "run": what the times are per. */
const char *out_sweep_unit(const struct sweep_result *res, const struct out_sweep_about *about);

#endif
