/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_GAIN_H
#define SB_OUT_SWEEP_GAIN_H

#include <stdbool.h>
#include "sweep.h"

/* What the writers of a sweep say of the verdicts: which prove something, and what is to win. */
bool out_sweep_proven(const struct sweep_target *target); /* its kappa has a meaning */

/* The gain ceiling and its share of an item, of which it is no more than the whole. Unknown where
 * the verdict proves nothing. */
struct sweep_estimate out_sweep_gain(const struct sweep_target *target);
struct sweep_estimate out_sweep_gain_share(const struct sweep_target *target);

/* The item of which that is a share: without a delay and without what the hooks cost; ns. NAN: not
 * known. */
double out_sweep_item_ns(const struct sweep_target *target);

/* The first n targets by what there is to win, most first; those of which it is unknown follow in
 * their order. The caller frees. */
size_t *out_sweep_by_gain(const struct sweep_result *res, size_t n);

/* How many targets are shown. */
size_t out_sweep_shown(const struct sweep_result *res, const struct out_sweep_about *about);

#endif
