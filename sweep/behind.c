/* SPDX-License-Identifier: MIT */
#include "behind.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"

/* A thread that waits for nothing has 1; its interval ends above this. */
#define FREE_LEAST 0.9

/* One block's shares; false: it has no calls or no items in one of the two arms. */
static bool shares(const struct infer_cell *sham, const struct infer_cell *dose, double h0,
		   double x, double *behind, double *kappa)
{
	if (!(sham->h > 0) || !(dose->h > 0))
		return false;
	*behind = dose->t * (1 - dose->h / h0) / x;
	*kappa = (dose->t - sham->t * dose->h / h0) / x;
	return isfinite(*behind) && isfinite(*kappa);
}

static struct sweep_calls of_dose(const struct infer_data *data, size_t arm, double threshold)
{
	struct sweep_calls out = { .arm = arm };
	double h0 = infer_level(data, 0).h, x = infer_level(data, arm).x;
	double *behind = must_calloc(data->n_blocks, sizeof(*behind));
	double *kappa = must_calloc(data->n_blocks, sizeof(*kappa));
	size_t n = 0;

	for (size_t b = 0; b < data->n_blocks && h0 > 0 && x > 0; b++) {
		const struct infer_cell *cell = &data->cell[b * data->n_arms];

		if (infer_usable(data, b))
			n += shares(&cell[0], &cell[arm], h0, x, &behind[n], &kappa[n]);
	}
	out.behind = infer_mean(behind, n, NULL);
	out.kappa = infer_mean(kappa, n, NULL);
	out.ahead = out.behind.lo > threshold && out.kappa.hi < FREE_LEAST;
	free(behind);
	free(kappa);
	return out;
}

void behind_fill(const struct infer_data *data, double threshold, struct sweep_calls *out)
{
	for (size_t a = data->n_arms - 1; a > 0; a--) {
		struct sweep_calls calls = of_dose(data, a, threshold);

		if (a == data->n_arms - 1 || calls.ahead)
			*out = calls;
		if (calls.ahead)
			return;
	}
}
