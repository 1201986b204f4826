/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_PLAN_H
#define SWEEP_PLAN_H

#include "order.h"
#include "record.h"

/*
 * The windows of one experiment, in order: blocks of SHAM and doses, and in between, at random,
 * gates: blocks of OFF, SHAM and a second SHAM under another name. The steps do not show whether a
 * pair is an A/A pair or a real one before it is over. When A and A differ, a real difference
 * proves nothing. With whole runs every block holds all of them, once.
 *
 * Doses are in groups. A block has SHAM and the doses of one group; a round is a block of each
 * group, in random order. So all groups are measured side by side, and blocks stay short.
 *
 *	plan_open(&plan, &cfg, &rng);
 *	while (plan_next(&plan, &slot)) {
 *		run slot.column;
 *		if (plan_between(&plan) && less is left to measure)
 *			plan_change(&plan, &cfg);
 *	}
 *	plan_close(&plan);
 */
struct plan_group {
	size_t n_doses;	      /* >= 1, at most ORDER_ARMS - 3 */
	int dose[ORDER_ARMS]; /* their numbers in the experiment */
};

struct plan_cfg {
	const struct plan_group *group;
	size_t n_groups, n_targets; /* targets: in all groups together */
	size_t rounds, gates;
	bool runs; /* whole runs: unmirrored, gates within the blocks */
};

struct plan_slot {
	int column;  /* enum record_column, COLUMN_DOSE + dose */
	int block;   /* gates are counted too */
	int group;   /* whose block it is; -1: a gate */
	int length;  /* of the column in a block */
	bool first;  /* of its block: before it is a good place to stop */
	size_t left; /* windows left in the block, this one included */
};

/* A group, and the order of its arms: SHAM first (with runs OFF, SHAM, SHAM), then its doses. */
struct plan_part {
	struct plan_group group;
	struct order order;
};

struct plan {
	struct plan_part *part;
	size_t n_parts, gates;
	bool runs;
	struct order gate;
	bool *is_gate; /* one per block */
	int *turn;     /* of the groups in a round */
	size_t n_blocks, block, taken, at, length;
	int group; /* of the block, -1: a gate */
	int seq[2 * ORDER_ARMS];
	struct rng *rng;
};

void plan_open(struct plan *plan, const struct plan_cfg *cfg, struct rng *rng); /* borrows rng */
void plan_close(struct plan *plan);
bool plan_next(struct plan *plan, struct plan_slot *slot); /* false: all done */

/* True after the last window of a round: with other groups it may go on, which plan_change() begins
 * with the next block. Blocks are counted on. */
bool plan_between(const struct plan *plan);
void plan_change(struct plan *plan, const struct plan_cfg *cfg);

/* Windows of a round. */
size_t plan_round(const struct plan_cfg *cfg);

#endif
