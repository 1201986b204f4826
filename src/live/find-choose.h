/* SPDX-License-Identifier: MIT */
#ifndef SB_FIND_CHOOSE_H
#define SB_FIND_CHOOSE_H

#include "src/result/find.h"

/*
 * Pure: fills what follows from the hits (of those that are left out nothing), and proposes a
 * progress point. An item is what is regular: of the functions that are called steadily, or, if
 * none is, in whole ratio to another one in each slice of time, and not at a whole multiple of the
 * rate of another one (which calls them, several times an item), the one with the largest share;
 * one that any part of a program calls (malloc(), Go's runtime), or in which a thread waits, only
 * if there is no other. Whether its calls are what the user counts as items cannot be known from
 * this. Each rate has a target.
 *
 * Of the counters of a page: a steady one, rather a counter than the number of a histogram's
 * events, and of these the one that grows by the most steps; as the response the finest of those
 * that have seconds.
 */
void find_choose(struct find_rates *rates);

/* Pure: what a hook of a function with so many calls a second takes of the time, about. */
double find_hook_cost(double per_s);

#endif
