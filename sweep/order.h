/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_ORDER_H
#define SWEEP_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include "rng.h"

/*
 * The order in which a block's arms run.
 *
 * A block is a row of a Williams square (Williams 1949: a Latin square in which every arm follows
 * every other equally often, so that the after-effect of one arm on the next is balanced) and then
 * the same row backwards: ABBA or BAAB for two arms, ABCCBA and so on for more. Forwards and back
 * each arm has the same mean position, so a linear drift cancels within every block. The labels of
 * each square are permuted at random and its rows shuffled; so every order is equally likely for
 * every block, as the randomisation test of infer.h requires.
 *
 * Not mirrored (whole runs: nothing is carried over): the row alone, each arm once.
 */
#define ORDER_ARMS 20

struct order {
	size_t n_arms;
	bool mirrored;
	size_t rows, used;		     /* of the square in use */
	int row[2 * ORDER_ARMS][ORDER_ARMS]; /* an odd number of arms takes two squares */
};

void order_init(struct order *order, size_t n_arms, bool mirrored);
size_t order_length(const struct order *order); /* windows per block */
/* The next block: order_length() indices of arms into seq. */
void order_block(struct order *order, struct rng *rng, int *seq);

#endif
