/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_PLAN_H
#define SWEEP_PLAN_H

#include "order.h"
#include "record.h"

/*
 * The windows of one experiment, in order: blocks of SHAM and the doses, and in between, at random,
 * gates: blocks of OFF, SHAM and a second SHAM under another name. The steps do not show whether a
 * pair is an A/A pair or a real one before it is over. When A and A differ, a real difference
 * proves nothing. With whole runs every block holds all of them, once.
 */
struct plan_cfg {
	size_t n_doses; /* >= 1, at most ORDER_ARMS - 3 */
	size_t blocks, gates;
	bool runs; /* whole runs: unmirrored, gates within the blocks */
};

struct plan_slot {
	int column;  /* enum record_column, COLUMN_DOSE + dose */
	int block;   /* gates are counted too */
	int length;  /* of the column in a block */
	bool first;  /* of its block: before it is a good place to stop */
	size_t left; /* windows left in the block, this one included */
};

struct plan {
	struct plan_cfg cfg;
	struct order main, gate;
	bool *is_gate; /* one per block */
	size_t n_blocks, block, at, length;
	int seq[2 * ORDER_ARMS];
	struct rng *rng;
};

void plan_open(struct plan *plan, const struct plan_cfg *cfg, struct rng *rng); /* borrows rng */
void plan_close(struct plan *plan);
bool plan_next(struct plan *plan, struct plan_slot *slot); /* false: all done */

#endif
