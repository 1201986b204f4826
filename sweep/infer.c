/* SPDX-License-Identifier: MIT */
#include "infer.h"

#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

#define LEVEL 0.975 /* of a two-sided 95 % interval's ends */
#define POWER 0.8

static const struct infer_cell *cell_at(const struct infer_data *data, size_t block, size_t arm)
{
	return &data->cell[block * data->n_arms + arm];
}

bool infer_usable(const struct infer_data *data, size_t block)
{
	for (size_t a = 0; a < data->n_arms; a++) {
		const struct infer_cell *cell = cell_at(data, block, a);

		if (!isfinite(cell->t) || !isfinite(cell->x))
			return false;
	}
	return true;
}

struct infer_cell infer_level(const struct infer_data *data, size_t arm)
{
	struct infer_cell sum = { 0 };
	double n = 0;

	for (size_t b = 0; b < data->n_blocks; b++) {
		const struct infer_cell *cell = cell_at(data, b, arm);

		if (!infer_usable(data, b))
			continue;
		sum.t += cell->t;
		sum.x += cell->x;
		sum.h += cell->h;
		n++;
	}
	if (n == 0)
		return (struct infer_cell){ .t = NAN, .x = NAN, .h = NAN };
	return (struct infer_cell){ .t = sum.t / n, .x = sum.x / n, .h = sum.h / n };
}

/* What adjusting costs a contrast: see struct infer_adjust. */
struct cost {
	double lost, extra;
};

static double form(const double m[][INFER_COVARIATES], const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			sum += v[i] * m[i][k] * v[k];
	return sum;
}

/* The contrast's covariates in a block. */
static void contrast_c(const struct infer_data *data, const double *w, size_t block, double *r)
{
	for (size_t k = 0; k < data->adjust->n; k++) {
		r[k] = 0;
		for (size_t a = 0; a < data->n_arms; a++)
			r[k] += w[a] * cell_at(data, block, a)->c[k];
	}
}

/* Of a contrast whose weights of the arms sum to 0. */
static struct cost cost_of(const struct infer_data *data, const double *w)
{
	double r[INFER_COVARIATES], mean[INFER_COVARIATES] = { 0 }, n = 0, squares = 0;
	struct cost cost = { 0, 0 };

	if (!data->adjust)
		return cost;
	for (size_t a = 0; a < data->n_arms; a++)
		squares += w[a] * w[a];
	for (size_t b = 0; b < data->n_blocks; b++) {
		if (!infer_usable(data, b))
			continue;
		contrast_c(data, w, b, r);
		for (size_t k = 0; k < data->adjust->n; k++)
			mean[k] += r[k];
		n++;
	}
	for (size_t k = 0; k < data->adjust->n && n > 0; k++)
		mean[k] /= n;
	for (size_t b = 0; b < data->n_blocks && squares > 0; b++) {
		if (!infer_usable(data, b))
			continue;
		contrast_c(data, w, b, r);
		for (size_t k = 0; k < data->adjust->n; k++)
			r[k] -= mean[k];
		cost.lost += form(data->adjust->inverse, r, data->adjust->n) / squares;
	}
	for (int i = 0; i < 2; i++)
		cost.extra = fmax(cost.extra, form(data->adjust->error[i], mean, data->adjust->n));
	return cost;
}

/* The contrasts of all usable blocks. */
struct contrasts {
	size_t n;
	double *w, *y, *z; /* w: one per arm; y, z: one per block */
	double scale;	   /* D */
	double floor;	   /* variance of y caused by rounding alone */
	double df, extra;  /* n - 1 but for what adjusting costs; in the unit of y */
};

static void contrasts_free(struct contrasts *c)
{
	free(c->w);
	free(c->y);
	free(c->z);
}

static void weigh_arms(const struct infer_data *data, struct contrasts *c)
{
	double mean = 0, squares = 0;

	for (size_t a = 0; a < data->n_arms; a++) {
		c->w[a] = infer_level(data, a).x;
		mean += c->w[a] / (double)data->n_arms;
	}
	for (size_t a = 0; a < data->n_arms; a++) {
		c->w[a] -= mean;
		squares += c->w[a] * c->w[a];
	}
	c->scale = squares; /* sum of w x: the weights sum to 0 */
}

static void contrasts_make(const struct infer_data *data, struct contrasts *c)
{
	struct cost cost;

	*c = (struct contrasts){ .n = 0 };
	c->w = must_calloc(data->n_arms, sizeof(double));
	c->y = must_calloc(data->n_blocks, sizeof(double));
	c->z = must_calloc(data->n_blocks, sizeof(double));
	weigh_arms(data, c);
	if (!(c->scale > 0))
		return;
	for (size_t b = 0; b < data->n_blocks; b++) {
		if (!infer_usable(data, b))
			continue;
		for (size_t a = 0; a < data->n_arms; a++) {
			c->y[c->n] += c->w[a] * cell_at(data, b, a)->t / c->scale;
			c->z[c->n] += c->w[a] * cell_at(data, b, a)->x / c->scale;
		}
		c->n++;
	}
	c->floor = data->resolution_ns * data->resolution_ns / 48 / c->scale;
	cost = cost_of(data, c->w);
	c->df = (double)c->n - 1 - cost.lost;
	c->extra = cost.extra / c->scale / c->scale;
}

static double covariance(const double *a, const double *b, size_t n)
{
	double ma = stat_mean(a, n), mb = stat_mean(b, n), sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (a[i] - ma) * (b[i] - mb);
	return sum / (double)(n - 1);
}

/* se of mean(y) / mean(z), linearised; y and z picked by index (a resample) or as they are. */
static double ratio(const struct contrasts *c, const size_t *pick, double *se)
{
	double n = (double)c->n, my = 0, mz = 0, squares = 0, k;
	double df = pick ? n - 1 : c->df,
	       extra = pick ? 0 : c->extra; /* slopes are not resampled */

	for (size_t i = 0; i < c->n; i++) {
		my += c->y[pick ? pick[i] : i] / n;
		mz += c->z[pick ? pick[i] : i] / n;
	}
	k = my / mz;
	for (size_t i = 0; i < c->n; i++) {
		size_t b = pick ? pick[i] : i;
		double e = c->y[b] - k * c->z[b];

		squares += e * e; /* their mean is 0 */
	}
	*se = sqrt(fmax(squares / df, c->floor) / n + extra) / fabs(mz);
	return k;
}

/* All k that |mean(y - k z)| <= q * se(y - k z) allows: a quadratic in k. */
static void fieller(const struct contrasts *c, struct sweep_estimate *out)
{
	double n = (double)c->n, q = stat_t_quantile(LEVEL, c->df), my = stat_mean(c->y, c->n);
	double mz = stat_mean(c->z, c->n), more = (n - 1) / c->df, f = q * q / n, a, b, d, root;

	a = mz * mz - f * more * stat_var(c->z, c->n);
	b = my * mz - f * more * covariance(c->y, c->z, c->n);
	d = my * my - f * (fmax(more * stat_var(c->y, c->n), c->floor) + n * c->extra);
	root = b * b - a * d;
	if (!(a > 0) || !(root >= 0)) { /* the injected time does not differ from 0 */
		out->lo = -INFINITY;
		out->hi = INFINITY;
		return;
	}
	out->lo = (b - sqrt(root)) / a;
	out->hi = (b + sqrt(root)) / a;
}

/* Studentised and symmetric: the spread of |k* - k| / se* over resamples of blocks. */
static bool bootstrap(const struct contrasts *c, struct rng *rng, double k, double se,
		      struct sweep_estimate *out)
{
	double *t = must_calloc(INFER_RESAMPLES, sizeof(*t)), se_star, half;
	size_t *pick = must_calloc(c->n, sizeof(*pick)), n = 0;
	bool ok;

	for (int r = 0; r < INFER_RESAMPLES; r++) {
		double k_star;

		for (size_t i = 0; i < c->n; i++)
			pick[i] = rng_below(rng, (uint32_t)c->n);
		k_star = ratio(c, pick, &se_star);
		if (se_star > 0 && isfinite(k_star))
			t[n++] = fabs(k_star - k) / se_star;
	}
	ok = n > INFER_RESAMPLES * 9 / 10;
	if (ok) {
		stat_sort(t, n);
		half = se * stat_quantile_sorted(t, n, 2 * LEVEL - 1);
		if (c->df < (double)c->n - 1) /* the resamples have all degrees of freedom */
			half *= stat_t_quantile(LEVEL, c->df) /
				stat_t_quantile(LEVEL, (double)c->n - 1);
		out->lo = k - half;
		out->hi = k + half;
	}
	free(pick);
	free(t);
	return ok;
}

/* T of the usable blocks, n of them: [block * n_arms + arm]. The caller frees. */
static double *usable_t(const struct infer_data *data, size_t n)
{
	double *t = must_calloc(n * data->n_arms + 1, sizeof(*t));
	size_t at = 0;

	for (size_t b = 0; b < data->n_blocks; b++)
		for (size_t a = 0; a < data->n_arms && infer_usable(data, b); a++)
			t[at++] = cell_at(data, b, a)->t;
	return t;
}

/* The arms' labels mean nothing if the arms do nothing: how often does chance make as much? */
static double randomisation(const struct infer_data *data, const struct contrasts *c,
			    struct rng *rng)
{
	size_t arms = data->n_arms, extreme = 1;
	double seen = fabs(stat_mean(c->y, c->n)) * (double)c->n * c->scale;
	double *t;
	int label[64];

	if (arms > 64)
		return NAN;
	t = usable_t(data, c->n);
	for (size_t a = 0; a < arms; a++)
		label[a] = (int)a;
	for (int r = 0; r < INFER_RESAMPLES; r++) {
		double sum = 0;

		for (size_t b = 0; b < c->n; b++) {
			rng_shuffle(rng, label, arms);
			for (size_t a = 0; a < arms; a++)
				sum += c->w[a] * t[b * arms + (size_t)label[a]];
		}
		extreme += fabs(sum) >= seen * (1 - 1e-12);
	}
	free(t);
	return (double)extreme / (INFER_RESAMPLES + 1);
}

static void cross_check(const struct contrasts *c, struct infer_kappa *out)
{
	double *v = must_calloc(c->n, sizeof(*v)), mz = stat_mean(c->z, c->n);

	for (size_t i = 0; i < c->n; i++)
		v[i] = c->y[i] / mz;
	out->robust.est = stat_hodges_lehmann(v, c->n, 0.95, &out->robust.lo, &out->robust.hi);
	out->robust_agrees = out->robust.lo <= out->kappa.hi && out->kappa.lo <= out->robust.hi;
	free(v);
}

static void unknown(struct infer_kappa *out, const char *why)
{
	out->kappa = out->robust = SWEEP_UNKNOWN;
	out->se = out->df = out->p_t = out->p_random = out->mde = NAN;
	out->method = "";
	out->robust_agrees = true;
	out->why = why;
}

static void estimate(const struct infer_data *data, const struct contrasts *c, struct rng *rng,
		     struct infer_kappa *out)
{
	out->df = c->df;
	out->kappa.est = ratio(c, NULL, &out->se);
	out->method = "t";
	fieller(c, &out->kappa);
	if (isinf(out->kappa.hi)) {
		unknown(out, "the injected time does not differ from none");
		return;
	}
	out->p_t = stat_t_p2(out->se > 0 ? out->kappa.est / out->se : INFINITY, out->df);
	if (!(out->se > 0) && out->kappa.est == 0)
		out->p_t = 1;
	out->mde = (stat_t_quantile(LEVEL, out->df) + stat_t_quantile(POWER, out->df)) * out->se;
	out->p_random = NAN;
	if (rng) {
		if (c->n >= INFER_BOOT_BLOCKS && out->se * out->se * (double)c->n > c->floor &&
		    bootstrap(c, rng, out->kappa.est, out->se, &out->kappa))
			out->method = "bootstrap-t";
		out->p_random = randomisation(data, c, rng);
	}
	cross_check(c, out);
}

void infer_kappa(const struct infer_data *data, struct rng *rng, struct infer_kappa *out)
{
	struct contrasts c;
	size_t usable = 0;

	*out = (struct infer_kappa){ .method = "" };
	for (size_t b = 0; b < data->n_blocks; b++)
		usable += infer_usable(data, b);
	out->n = usable;
	out->lost = data->n_blocks - usable;
	contrasts_make(data, &c);
	if (usable < 2)
		unknown(out, usable ? "one block has no spread" : "no block is complete");
	else if (!(c.scale > 0))
		unknown(out, "nothing was injected");
	else if (!(c.df >= 1))
		unknown(out, "too few blocks for what is adjusted for");
	else
		estimate(data, &c, rng, out);
	contrasts_free(&c);
}

static struct sweep_estimate mean_of(const double *v, size_t n, const struct cost *cost, double *p)
{
	struct sweep_estimate out = SWEEP_UNKNOWN;
	double se, half, df = (double)n - 1 - cost->lost;

	if (p)
		*p = NAN;
	out.est = stat_mean(v, n);
	if (n < 2 || !(df > 0))
		return out;
	se = sqrt(stat_var(v, n) * (double)(n - 1) / df / (double)n + cost->extra);
	half = stat_t_quantile(LEVEL, df) * se;
	out.lo = out.est - half;
	out.hi = out.est + half;
	if (p && se > 0)
		*p = stat_t_p2(out.est / se, df);
	else if (p)
		*p = out.est == 0 ? 1 : 0;
	return out;
}

struct sweep_estimate infer_mean(const double *v, size_t n, double *p)
{
	return mean_of(v, n, &(struct cost){ 0, 0 }, p);
}

static size_t differences(const struct infer_data *data, size_t arm, bool hits, double *v)
{
	double h0 = infer_level(data, 0).h;
	size_t n = 0;

	for (size_t b = 0; b < data->n_blocks; b++) {
		const struct infer_cell *sham = cell_at(data, b, 0), *dose = cell_at(data, b, arm);

		if (infer_usable(data, b))
			v[n++] = hits ? (dose->h - sham->h) / h0 : dose->t - sham->t;
	}
	return hits && !(h0 > 0) ? 0 : n;
}

static struct sweep_estimate contrast(const struct infer_data *data, size_t arm, bool hits,
				      double *p)
{
	double *v = must_calloc(data->n_blocks, sizeof(*v));
	double *w = must_calloc(data->n_arms, sizeof(*w));
	size_t n = differences(data, arm, hits, v);
	struct cost cost = { 0, 0 };
	struct sweep_estimate out;

	w[arm] += 1;
	w[0] -= 1;
	if (!hits)
		cost = cost_of(data, w);
	out = mean_of(v, n, &cost, p);
	free(w);
	free(v);
	return out;
}

struct sweep_estimate infer_delta(const struct infer_data *data, size_t arm, double *p)
{
	return contrast(data, arm, false, p);
}

struct sweep_estimate infer_hits(const struct infer_data *data, size_t arm, double *p)
{
	return contrast(data, arm, true, p);
}
