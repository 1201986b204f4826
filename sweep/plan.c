/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <stdlib.h>
#include "src/base/must.h"

#define RUN_ARMS 3 /* OFF, SHAM and SHAM, in each block of whole runs */

/* Of the blocks from `begin` on: a gate after every few, where in between is left to chance. */
static void place_gates(struct plan *plan, size_t begin, size_t gates)
{
	size_t n = plan->n_blocks - begin;

	for (size_t g = 0; g < gates; g++) {
		size_t from = begin + g * n / gates, to = begin + (g + 1) * n / gates;

		if (to > from) {
			plan->is_gate[from + rng_below(plan->rng, (uint32_t)(to - from))] = true;
			plan->gates++;
		}
	}
}

static void take_groups(struct plan *plan, const struct plan_cfg *cfg)
{
	plan->part = must_realloc(plan->part, cfg->n_groups * sizeof(*plan->part));
	plan->turn = must_realloc(plan->turn, cfg->n_groups * sizeof(*plan->turn));
	plan->n_parts = cfg->n_groups;
	plan->taken = 0;
	for (size_t g = 0; g < cfg->n_groups; g++) {
		struct plan_part *part = &plan->part[g];

		part->group = cfg->group[g];
		plan->turn[g] = (int)g;
		order_init(&part->order, part->group.n_doses + (cfg->runs ? RUN_ARMS : 1),
			   !cfg->runs);
	}
}

/* From the next block on. */
static void take_cfg(struct plan *plan, const struct plan_cfg *cfg)
{
	size_t begin = plan->block;

	take_groups(plan, cfg);
	plan->runs = cfg->runs;
	plan->n_blocks = begin + cfg->rounds * cfg->n_groups + cfg->gates;
	plan->is_gate = must_realloc(plan->is_gate, plan->n_blocks * sizeof(*plan->is_gate));
	for (size_t i = begin; i < plan->n_blocks; i++)
		plan->is_gate[i] = false;
	place_gates(plan, begin, cfg->gates);
}

void plan_open(struct plan *plan, const struct plan_cfg *cfg, struct rng *rng)
{
	*plan = (struct plan){ .rng = rng };
	order_init(&plan->gate, RUN_ARMS, true);
	take_cfg(plan, cfg);
}

void plan_close(struct plan *plan)
{
	free(plan->part);
	free(plan->turn);
	free(plan->is_gate);
	plan->part = NULL;
	plan->turn = NULL;
	plan->is_gate = NULL;
}

/* Arm 0 of a main block is SHAM; of a gate, and of a block of whole runs, OFF. */
static int column_of(const struct plan *plan, int arm)
{
	int first = plan->runs ? RUN_ARMS : 1;

	if (plan->group < 0 || (plan->runs && arm < RUN_ARMS))
		return arm;
	if (arm == 0)
		return COLUMN_SHAM;
	return COLUMN_DOSE + plan->part[plan->group].group.dose[arm - first];
}

static void next_block(struct plan *plan)
{
	if (plan->length && plan->at == plan->length) {
		plan->block++;
		plan->at = plan->length = 0;
	}
}

static void begin_block(struct plan *plan)
{
	struct order *order = &plan->gate;

	plan->group = -1;
	if (!plan->is_gate[plan->block]) {
		if (plan->taken % plan->n_parts == 0)
			rng_shuffle(plan->rng, plan->turn, plan->n_parts);
		plan->group = plan->turn[plan->taken++ % plan->n_parts];
		order = &plan->part[plan->group].order;
	}
	order_block(order, plan->rng, plan->seq);
	plan->length = order_length(order);
}

bool plan_next(struct plan *plan, struct plan_slot *slot)
{
	next_block(plan);
	if (plan->block >= plan->n_blocks)
		return false;
	if (!plan->length)
		begin_block(plan);
	*slot = (struct plan_slot){ .column = column_of(plan, plan->seq[plan->at]),
				    .block = (int)plan->block,
				    .group = plan->group,
				    .length = plan->runs ? 1 : 2,
				    .first = plan->at == 0,
				    .left = plan->length - plan->at };
	plan->at++;
	return true;
}

bool plan_between(const struct plan *plan)
{
	return plan->at == plan->length && plan->group >= 0 && plan->taken &&
	       plan->taken % plan->n_parts == 0;
}

void plan_change(struct plan *plan, const struct plan_cfg *cfg)
{
	next_block(plan);
	take_cfg(plan, cfg);
}

size_t plan_round(const struct plan_cfg *cfg)
{
	size_t windows = 0;

	for (size_t g = 0; g < cfg->n_groups; g++)
		windows += cfg->runs ? cfg->group[g].n_doses + RUN_ARMS :
				       2 * (cfg->group[g].n_doses + 1);
	return windows;
}
