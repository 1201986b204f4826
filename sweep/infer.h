/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_INFER_H
#define SWEEP_INFER_H

#include <stdbool.h>
#include <stddef.h>
#include "result.h"
#include "rng.h"

/*
 * From blocks to kappa.
 *
 * A cell is the result of one arm in one block, its windows pooled: T = sum of time / sum of items
 * (no mean of ratios, which is biased where items are few), x = injected / items. Arm 0 is SHAM.
 *
 * Contrasts are made within blocks, so that drift between blocks cancels. The weight of an arm is
 * its mean dose less the mean over arms, w_a = X_a - mean(X), D = sum w_a X_a; in block b
 *
 *	y_b = sum_a w_a T_ba / D	z_b = sum_a w_a x_ba / D	kappa = mean(y) / mean(z)
 *
 * which is the instrumental-variable estimate with the assigned arm as the instrument (for one
 * dose: Wald's). Regressing T on x window by window would be biased, because both are divided by
 * the same items. The interval is Fieller's (1954): all k for which the t test on y_b - k z_b, with
 * n - 1 degrees of freedom, does not reject; it is exact for normal contrasts and is unbounded by
 * itself when nothing was injected. From INFER_BOOT_BLOCKS blocks on the studentised bootstrap over
 * blocks, symmetric (Hall 1988), replaces the t quantiles: contrasts are differences of like with
 * like, and with heavy tails the equal-tailed one contained the truth in only 87 % of simulated
 * runs. (BCa on 8 blocks: 88 %.)
 *
 * Blocks with an empty cell (no items) are left out and counted in `lost`; no others are.
 */
#define INFER_BOOT_BLOCKS 20
#define INFER_RESAMPLES	  1999

#define INFER_COVARIATES SWEEP_ADJUST

struct infer_cell {
	double t, x, h;		    /* ns, ns, hits, per item; NAN: no items */
	double c[INFER_COVARIATES]; /* the covariates that T is adjusted for, in their order */
};

/*
 * T is T - beta (c - mean of c), with slopes beta that were fitted to the same cells (adjust.h).
 * Residuals of a fit are smaller than what they are of, and beta is not known exactly. A contrast w
 * of unit length whose covariates in block b are r_b = sum_a w_a c_ba loses
 *
 *	sum_b (r_b - mean r)' (C'C)^-1 (r_b - mean r)
 *
 * of its n - 1 degrees of freedom, between 0 and the number of slopes, and the variance of its mean
 * is larger by (mean r)' V (mean r), V being that of beta.
 */
struct infer_adjust {
	size_t n;
	double inverse[INFER_COVARIATES][INFER_COVARIATES]; /* (C'C)^-1 */
	/* V, of cells that err independently of each other, and of blocks that do: the larger */
	double error[2][INFER_COVARIATES][INFER_COVARIATES];
};

struct infer_data {
	size_t n_blocks, n_arms;       /* arms: SHAM and at least one dose */
	const struct infer_cell *cell; /* [block * n_arms + arm] */
	const int *number;	       /* of each block in its experiment; NULL: of no interest */
	double resolution_ns;	       /* of T in a cell (one update of the source); 0 none. The
					* spread of a cell is not taken to be below half of
					* what rounding makes, resolution / sqrt(12) */
	const struct infer_adjust *adjust; /* NULL: T is as measured */
};

struct infer_kappa {
	struct sweep_estimate kappa;  /* unknown when nothing was injected or n < 2 */
	double se, df;		      /* linearised standard error; n - 1, less if adjusted */
	size_t n, lost;		      /* blocks used, blocks left out */
	const char *method;	      /* "t" or "bootstrap-t" */
	double p_t;		      /* of kappa = 0, two-sided */
	double p_random;	      /* randomisation test: labels permuted within blocks */
	struct sweep_estimate robust; /* Hodges-Lehmann over y_b / mean(z) */
	bool robust_agrees;	      /* the two intervals have a value in common */
	double mde;		      /* (t_.975 + t_.8) * se */
	const char *why;	      /* static, when kappa is unknown; else NULL */
};

/* rng drives the bootstrap and the randomisation test; NULL: neither (t, p_random NAN). */
void infer_kappa(const struct infer_data *data, struct rng *rng, struct infer_kappa *out);

/* Estimate and 95 % t interval of the mean of paired contrasts; NAN where n < 2. */
struct sweep_estimate infer_mean(const double *v, size_t n, double *p);

/* Contrast of arm a to arm 0: T (ns), and hits per item as ratio - 1. */
struct sweep_estimate infer_delta(const struct infer_data *data, size_t arm, double *p);
struct sweep_estimate infer_hits(const struct infer_data *data, size_t arm, double *p);

/* Means over the blocks used. */
struct infer_cell infer_level(const struct infer_data *data, size_t arm);

/* True for a block whose cells are all known. */
bool infer_usable(const struct infer_data *data, size_t block);

#endif
