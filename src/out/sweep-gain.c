/* SPDX-License-Identifier: MIT */
#include "sweep-gain.h"

#include <math.h>
#include "src/base/must.h"

bool out_sweep_proven(const struct sweep_target *target)
{
	return target->verdict == VERDICT_CRITICAL || target->verdict == VERDICT_PARTIAL ||
	       target->verdict == VERDICT_HIDDEN || target->verdict == VERDICT_SLACK;
}

struct sweep_estimate out_sweep_gain(const struct sweep_target *target)
{
	return out_sweep_proven(target) ? target->gain_ceiling_ns : SWEEP_UNKNOWN;
}

static double whole(double share)
{
	return share > 1 ? 1 : share; /* NAN stays */
}

double out_sweep_item_ns(const struct sweep_target *target)
{
	return target->plain_ns > 0 ? target->plain_ns : target->t0_ns > 0 ? target->t0_ns : NAN;
}

struct sweep_estimate out_sweep_gain_share(const struct sweep_target *target)
{
	struct sweep_estimate gain = out_sweep_gain(target);
	double item = out_sweep_item_ns(target);

	return (struct sweep_estimate){ whole(gain.est / item), whole(gain.lo / item),
					whole(gain.hi / item) };
}

size_t *out_sweep_by_gain(const struct sweep_result *res, size_t n)
{
	size_t *order = must_calloc(n + 1, sizeof(*order));

	for (size_t i = 0; i < n; i++) {
		double gain = out_sweep_gain(&res->target[i]).est;
		size_t at = i;

		for (; at > 0 && isfinite(gain); at--) {
			double before = out_sweep_gain(&res->target[order[at - 1]]).est;

			if (isfinite(before) && before >= gain)
				break;
			order[at] = order[at - 1];
		}
		order[at] = i;
	}
	return order;
}

size_t out_sweep_shown(const struct sweep_result *res, const struct out_sweep_about *about)
{
	return about->n_targets < res->n_targets ? about->n_targets : res->n_targets;
}
