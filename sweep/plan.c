/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <stdlib.h>
#include "src/base/must.h"

/* A gate after every few blocks, where in between is left to chance. */
static void place_gates(struct plan *plan)
{
	size_t placed = 0, gates = plan->cfg.gates;

	for (size_t g = 0; g < gates; g++) {
		size_t from = g * plan->n_blocks / gates, to = (g + 1) * plan->n_blocks / gates;

		if (to > from) {
			plan->is_gate[from + rng_below(plan->rng, (uint32_t)(to - from))] = true;
			placed++;
		}
	}
	plan->cfg.gates = placed;
}

void plan_open(struct plan *plan, const struct plan_cfg *cfg, struct rng *rng)
{
	*plan = (struct plan){ .cfg = *cfg, .rng = rng };
	plan->n_blocks = cfg->blocks + cfg->gates;
	plan->is_gate = must_calloc(plan->n_blocks, sizeof(bool));
	order_init(&plan->main, cfg->n_doses + (cfg->runs ? 3 : 1), !cfg->runs);
	order_init(&plan->gate, 3, true);
	if (cfg->gates)
		place_gates(plan);
}

void plan_close(struct plan *plan)
{
	free(plan->is_gate);
	plan->is_gate = NULL;
}

/* Arm 0 of a main block is SHAM; of a gate, and of a block of whole runs, OFF. */
static int column_of(const struct plan *plan, int arm)
{
	if (plan->cfg.runs || plan->is_gate[plan->block])
		return arm;
	return arm == 0 ? COLUMN_SHAM : COLUMN_DOSE + arm - 1;
}

bool plan_next(struct plan *plan, struct plan_slot *slot)
{
	if (plan->length && plan->at == plan->length) {
		plan->block++;
		plan->at = plan->length = 0;
	}
	if (plan->block >= plan->n_blocks)
		return false;
	if (!plan->length) {
		struct order *order = plan->is_gate[plan->block] ? &plan->gate : &plan->main;

		order_block(order, plan->rng, plan->seq);
		plan->length = order_length(order);
	}
	*slot = (struct plan_slot){ .column = column_of(plan, plan->seq[plan->at]),
				    .block = (int)plan->block,
				    .length = plan->cfg.runs ? 1 : 2,
				    .first = plan->at == 0,
				    .left = plan->length - plan->at };
	plan->at++;
	return true;
}
