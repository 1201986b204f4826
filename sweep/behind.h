/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_BEHIND_H
#define SWEEP_BEHIND_H

#include "infer.h"

/*
 * Do the calls of a target keep up with the items? Work that is done ahead and stored (a buffer
 * before a slower stage, a queue of a device) hides a delay of what fills the store until the store
 * is empty. If that takes longer than a window, and the store is filled again without the delay,
 * every window says hidden. But the calls show it: with h calls an item and T the time per item,
 *
 *	T h(0) / h		is the time per item, once calls and items keep step again,
 *	T (h(0) / h - 1)	is the part of it that the items do not feel yet,
 *
 * both with the delay, h(0) being h without one. As shares of what is injected for h(0) calls these
 * are `kappa` (less T without the delay) and `behind`. Three cases have fewer calls an item:
 *
 *	a store is used up		behind > 0, kappa < 1: the slack in which the store is
 *					filled again is part of the delay
 *	a thread that waits for nothing	behind = kappa = 1: its calls come later by the delay, and
 *	(a poller, work in background)	no item needs them
 *	fewer calls do the same work	as the first: the data do not tell them apart
 *
 * ahead: the first or the third is shown, by one dose: of a large one the slack is a small part.
 * `arm` is this dose, or else the largest. threshold: a share below it is none.
 * Unknown, and not ahead, where nothing was injected, and in fewer than two blocks with calls.
 */
void behind_fill(const struct infer_data *data, double threshold, struct sweep_calls *out);

#endif
