/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_WORDS_H
#define SB_OUT_SWEEP_WORDS_H

#include "sweep.h"

/* "waiting in futex": what a thread does in that time. counter: below SIDES_COUNTERS, a time. */
const char *out_sweep_doing(size_t counter);

/*
 * Why a target has its verdict, in at most three sentences, of significant changes alone. Returns
 * how many; none where the verdict proves nothing, or nothing was found.
 */
enum { OUT_SENTENCES = 3, OUT_SENTENCE = 512 };
size_t out_sweep_words(const struct sweep_result *res, const struct sweep_target *target,
		       const struct out_sweep_about *about,
		       char sentence[OUT_SENTENCES][OUT_SENTENCE]);

/* A sentence where the machine had hardly a processor idle; NULL: it had, or that is not known. */
const char *out_sweep_crowded(const struct out_sweep_about *about);

#endif
