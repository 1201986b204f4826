/* SPDX-License-Identifier: MIT */
#include "account.h"

#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

#define LEVEL 0.05

static const struct sweep_change none = {
	.sham = NAN,
	.dose = NAN,
	.delta = { NAN, NAN, NAN },
	.slope = { NAN, NAN, NAN },
	.p_none = NAN,
	.p_random = NAN,
	.p_adjusted = NAN,
};

/* Of the sum over all lanes, the part that counts in x. */
static double share_of_lanes(const struct record *rec, const struct account_of *of)
{
	struct record_view view = { .mode = of->mode, .role = -1 };
	struct infer_data data;
	double x, all;

	record_data(rec, &of->of, &view, &data, NULL);
	x = infer_level(&data, of->of.n_doses).x;
	record_data_free(&data);
	view.mode = LANE_ALL;
	record_data(rec, &of->of, &view, &data, NULL);
	all = infer_level(&data, of->of.n_doses).x;
	record_data_free(&data);
	return all > 0 ? x / all : 1;
}

static bool scale(struct infer_data *data, double by)
{
	struct infer_cell *cell = (struct infer_cell *)data->cell;
	bool any = false;

	for (size_t i = 0; i < data->n_blocks * data->n_arms; i++) {
		cell[i].t *= by;
		any |= cell[i].t != 0; /* NAN too */
	}
	return any;
}

static void change_of(struct infer_data *data, double rounding, struct rng *rng,
		      struct sweep_change *change)
{
	struct infer_kappa kappa;

	change->sham = infer_level(data, 0).t;
	change->dose = infer_level(data, data->n_arms - 1).t;
	change->delta = infer_delta(data, data->n_arms - 1, NULL);
	data->resolution_ns = rounding * fabs(change->sham);
	infer_kappa(data, rng, &kappa);
	change->slope = kappa.kappa;
	change->p_none = kappa.p_t;
	change->p_random = kappa.p_random;
}

void account_target(const struct record *rec, const struct account_of *of, struct rng *rng,
		    struct sweep_target *target)
{
	struct record_view view = { .mode = of->mode, .role = -1 };
	double share = share_of_lanes(rec, of);
	size_t n = SIDE_COUNT * rec->n_counters;

	target->change = must_calloc(n, sizeof(*target->change));
	for (size_t i = 0; i < n; i++) {
		struct sweep_change *change = &target->change[i];
		struct infer_data data;

		*change = none;
		view.counter = i + 1;
		record_data(rec, &of->of, &view, &data, NULL);
		if (scale(&data, i / rec->n_counters == SIDE_DELAYED ? share : 1))
			change_of(&data, of->rounding, rng, change);
		else if (data.n_blocks)
			change->sham = change->dose = 0;
		record_data_free(&data);
	}
}

void account_judge(struct sweep_result *res)
{
	size_t n = SIDE_COUNT * res->n_counters;
	double *p = must_calloc(n * res->n_targets, sizeof(*p));

	for (size_t i = 0; i < n * res->n_targets; i++) {
		const struct sweep_change *change = res->target[i / n].change;

		p[i] = change ? change[i % n].p_none : NAN;
		res->n_tests += !isnan(p[i]);
	}
	stat_holm(p, n * res->n_targets);
	for (size_t i = 0; i < n * res->n_targets; i++) {
		struct sweep_change *change = res->target[i / n].change;

		if (!change)
			continue;
		change[i % n].p_adjusted = p[i];
		change[i % n].significant = p[i] < LEVEL && change[i % n].p_random < LEVEL &&
					    !res->gates.unproven;
	}
	free(p);
}
