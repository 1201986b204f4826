/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_JUDGED_H
#define SWEEP_JUDGED_H

#include <math.h>
#include "src/base/must.h"
#include "sweep/result.h"
#include "sweep/stat.h"

/* A result with one target that was tested, whose kappa is est, within half of it. */
static inline struct sweep_result *judged(double est, double half)
{
	struct sweep_result *res = sweep_result_new(1);
	struct sweep_target *target = &res->target[0];

	res->threshold = 0.1;
	target->spec = must_strdup("a");
	target->tested = true;
	target->hits = 1000;
	target->blocks = 12;
	target->kappa = (struct sweep_estimate){ est, est - half, est + half };
	target->kappa_se = half / 2.2;
	target->df = 11;
	target->mde = 3 * target->kappa_se;
	target->p_none = stat_t_p2(est / target->kappa_se, 11);
	target->p_felt = stat_t_cdf((est - 0.1) / target->kappa_se, 11);
	target->p_random = fmax(0.0005, target->p_none);
	return res;
}

#endif
