/* SPDX-License-Identifier: MIT */
#include "quantile.h"

#include <stdio.h>
#include <stdlib.h>
#include "src/base/must.h"

static const double shares[SWEEP_QUANTILES] = { 0.5, 0.9, 0.99 };

/* The blocks that count, and the responses of each arm in all of them. */
struct pool {
	struct histogram h;
	const struct infer_data *data;
	size_t *block, n_blocks, lost; /* lost: a window of it had no histogram */
	double *all;		       /* [arm * n + bucket] */
	double *without;	       /* of one arm, and less one block; n of them */
	double *t;		       /* [block * n_arms + arm], pseudo-values */
};

static const double *cell_of(const struct pool *p, size_t block, size_t arm)
{
	return &p->h.count[(p->block[block] * p->data->n_arms + arm) * p->h.n];
}

static bool has_all(const struct pool *p, size_t block)
{
	for (size_t a = 0; a < p->data->n_arms; a++)
		if (p->h.unknown[block * p->data->n_arms + a])
			return false;
	return true;
}

static void pool_make(const struct record *rec, const struct record_of *of,
		      const struct infer_data *data, struct pool *p)
{
	*p = (struct pool){ .data = data };
	histogram_make(rec, of, data, &p->h);
	p->block = must_calloc(data->n_blocks + 1, sizeof(*p->block));
	for (size_t b = 0; b < data->n_blocks; b++) {
		if (!infer_usable(data, b))
			continue;
		if (has_all(p, b))
			p->block[p->n_blocks++] = b;
		else
			p->lost++;
	}
	p->all = must_calloc(data->n_arms * p->h.n + 1, sizeof(*p->all));
	p->without = must_calloc(p->h.n + 1, sizeof(*p->without));
	p->t = must_calloc(p->n_blocks * data->n_arms + 1, sizeof(*p->t));
	for (size_t b = 0; b < p->n_blocks; b++)
		for (size_t a = 0; a < data->n_arms; a++)
			for (size_t i = 0; i < p->h.n; i++)
				p->all[a * p->h.n + i] += cell_of(p, b, a)[i];
}

static void pool_free(struct pool *p)
{
	histogram_free(&p->h);
	free(p->block);
	free(p->all);
	free(p->without);
	free(p->t);
}

/* Responses of the arm that has the fewest. */
static double fewest(const struct pool *p)
{
	double least = INFINITY;

	for (size_t a = 0; a < p->data->n_arms; a++) {
		double n = 0;

		for (size_t i = 0; i < p->h.n; i++)
			n += p->all[a * p->h.n + i];
		least = fmin(least, n);
	}
	return isfinite(least) ? least : 0;
}

/* False: without some block the quantile lies beyond all bounds. */
static bool pseudo_values(struct pool *p, size_t arm, double share, double est)
{
	size_t arms = p->data->n_arms;
	double n = (double)p->n_blocks, mean = 0;

	for (size_t b = 0; b < p->n_blocks; b++) {
		const double *cell = cell_of(p, b, arm);
		double *t = &p->t[b * arms + arm];

		for (size_t i = 0; i < p->h.n; i++)
			p->without[i] = p->all[arm * p->h.n + i] - cell[i];
		*t = histogram_quantile(&p->h, p->without, share).est;
		if (!isfinite(*t))
			return false;
		mean += *t / n;
	}
	for (size_t b = 0; b < p->n_blocks; b++)
		p->t[b * arms + arm] = est + (n - 1) * (mean - p->t[b * arms + arm]);
	return true;
}

/* Cells of the blocks that count, with these values as T. */
static struct infer_cell *cells_with(const struct pool *p, const double *t)
{
	size_t arms = p->data->n_arms;
	struct infer_cell *cell = must_calloc(p->n_blocks * arms + 1, sizeof(*cell));

	for (size_t b = 0; b < p->n_blocks; b++)
		for (size_t a = 0; a < arms; a++) {
			cell[b * arms + a] = p->data->cell[p->block[b] * arms + a];
			cell[b * arms + a].t = t[b * arms + a];
		}
	return cell;
}

/* As much as the places within the buckets allow: of the sum of w x quantile over arms. */
static void widen(struct sweep_estimate *e, const struct histogram_at *at, const double *w,
		  size_t arms)
{
	for (size_t a = 0; a < arms; a++) {
		double below = at[a].est - at[a].lo, above = at[a].hi - at[a].est;

		e->lo -= w[a] > 0 ? w[a] * below : -w[a] * above;
		e->hi += w[a] > 0 ? w[a] * above : -w[a] * below;
	}
}

/* The weights of infer.h: kappa is their sum with T, where injected times are as planned. */
static double *weights(const struct infer_data *data)
{
	double *w = must_calloc(data->n_arms, sizeof(*w)), mean = 0, scale = 0;

	for (size_t a = 0; a < data->n_arms; a++) {
		w[a] = infer_level(data, a).x;
		mean += w[a] / (double)data->n_arms;
	}
	for (size_t a = 0; a < data->n_arms; a++) {
		w[a] -= mean;
		scale += w[a] * w[a];
	}
	for (size_t a = 0; a < data->n_arms; a++)
		w[a] /= scale;
	return w;
}

static void estimate(const struct infer_data *data, const struct histogram_at *at,
		     struct sweep_quantile *q)
{
	size_t arms = data->n_arms, last = arms - 1;
	double *w = must_calloc(arms, sizeof(*w)), *slope = weights(data);
	struct infer_kappa kappa;
	double buckets;

	w[last] = 1;
	w[0] = -1;
	q->delta_ns = infer_delta(data, last, NULL);
	widen(&q->delta_ns, at, w, arms);
	infer_kappa(data, NULL, &kappa);
	q->slope = kappa.kappa;
	widen(&q->slope, at, slope, arms);
	free(w);
	free(slope);
	buckets = at[0].hi - at[0].lo + at[last].hi - at[last].lo;
	if (at[0].lo != at[last].lo && buckets <= fabs(q->delta_ns.est))
		return;
	q->delta_ns.est = q->slope.est = NAN;
	q->unresolved = true;
}

/* The level without a delay: of all blocks, with the spread between them. */
static void level(const struct infer_data *data, const struct histogram_at *sham,
		  struct sweep_quantile *q)
{
	double *v = must_calloc(data->n_blocks + 1, sizeof(*v));

	for (size_t b = 0; b < data->n_blocks; b++)
		v[b] = data->cell[b * data->n_arms].t;
	q->sham_ns = infer_mean(v, data->n_blocks, NULL);
	q->sham_ns.lo = fmax(0, q->sham_ns.lo - (sham->est - sham->lo));
	q->sham_ns.hi += sham->hi - sham->est;
	free(v);
}

static double slower(const struct pool *p, const double *count, double bound)
{
	double all = 0, above = 0;

	for (size_t i = 0; i < p->h.n; i++) {
		all += count[i];
		above += p->h.lo[i] >= bound ? count[i] : 0;
	}
	return all > 0 ? above / all : NAN;
}

/*
 * What the buckets do resolve: the share of responses that are slower than a bound, the one whose
 * share is nearest to the quantile's.
 */
static void share_beyond(struct pool *p, const struct histogram_at *sham, struct sweep_quantile *q)
{
	size_t arms = p->data->n_arms;
	double lo = slower(p, p->all, sham->lo), hi = slower(p, p->all, sham->hi), want;
	struct infer_data data = { .n_blocks = p->n_blocks, .n_arms = arms };
	struct infer_cell *cell;

	want = 1 - q->share;
	q->bound_ns = hi > 0 && hi * lo > want * want ? sham->hi : sham->lo;
	if (!(lo < 1) && hi > 0)
		q->bound_ns = sham->hi;
	for (size_t b = 0; b < p->n_blocks; b++)
		for (size_t a = 0; a < arms; a++)
			p->t[b * arms + a] = slower(p, cell_of(p, b, a), q->bound_ns);
	data.cell = cell = cells_with(p, p->t);
	q->slower = infer_level(&data, 0).t;
	q->slower_delta = infer_delta(&data, arms - 1, NULL);
	free(cell);
}

static void time_text(double ns, char *buf, size_t size)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	int i = 0;

	for (; fabs(ns) >= 1000 && i < 3; i++)
		ns /= 1000;
	snprintf(buf, size, "%.3g%s", ns, unit[i]);
}

static void why_unresolved(struct sweep_quantile *q)
{
	char b[4][16];
	bool same = q->bucket_ns[0][0] == q->bucket_ns[1][0];

	for (int i = 0; i < 4; i++)
		time_text(q->bucket_ns[i / 2][i % 2], b[i], sizeof(b[i]));
	if (same)
		snprintf(q->reason, sizeof(q->reason),
			 "between %s and %s with and without the delay: that bucket does not "
			 "resolve the change",
			 b[0], b[1]);
	else
		snprintf(q->reason, sizeof(q->reason),
			 "between %s and %s, with the delay between %s and %s: these buckets do "
			 "not resolve the change",
			 b[0], b[1], b[2], b[3]);
}

static void why_beyond(struct sweep_quantile *q, double bound_ns)
{
	char bound[32];

	time_text(bound_ns, bound, sizeof(bound));
	snprintf(q->reason, sizeof(q->reason), "it lies beyond the last bound of the buckets, %s",
		 bound);
}

static void fill(struct pool *p, struct sweep_quantile *q)
{
	size_t arms = p->data->n_arms;
	struct histogram_at *at = must_calloc(arms, sizeof(*at));
	struct infer_data data = { .n_blocks = p->n_blocks, .n_arms = arms };
	const struct histogram_at *beyond = NULL;
	struct infer_cell *cell;

	for (size_t a = 0; a < arms; a++) {
		at[a] = histogram_quantile(&p->h, &p->all[a * p->h.n], q->share);
		if (!isfinite(at[a].est) || !pseudo_values(p, a, q->share, at[a].est))
			beyond = &at[a];
	}
	for (int i = 0; i < 2; i++) {
		const struct histogram_at *side = &at[i ? arms - 1 : 0];

		q->bucket_ns[i][0] = side->lo;
		q->bucket_ns[i][1] = side->hi;
	}
	if (beyond) {
		why_beyond(q, beyond->lo);
	} else {
		data.cell = cell = cells_with(p, p->t);
		q->dose_ns = at[arms - 1].est;
		level(&data, &at[0], q);
		estimate(&data, at, q);
		free(cell);
		if (q->unresolved)
			why_unresolved(q);
		share_beyond(p, &at[0], q);
	}
	free(at);
}

void quantile_of(const struct record *rec, const struct record_of *of,
		 const struct infer_data *data, double share, struct quantile_of *out)
{
	size_t arms = data->n_arms;
	struct pool p;
	bool ok;

	pool_make(rec, of, data, &p);
	*out = (struct quantile_of){ .data.n_arms = arms };
	out->at = must_calloc(arms + 1, sizeof(*out->at));
	ok = p.h.n && p.lost <= p.n_blocks / 4 && fewest(&p) * (1 - share) >= QUANTILE_BEYOND;
	for (size_t a = 0; a < arms && ok; a++) {
		out->at[a] = histogram_quantile(&p.h, &p.all[a * p.h.n], share);
		ok = isfinite(out->at[a].est) && pseudo_values(&p, a, share, out->at[a].est);
	}
	out->data.n_blocks = ok ? p.n_blocks : 0;
	out->data.cell = cells_with(&p, p.t);
	pool_free(&p);
}

void quantile_of_free(struct quantile_of *q)
{
	free(q->at);
	record_data_free(&q->data);
}

void quantile_widen_kappa(const struct quantile_of *q, struct sweep_estimate *kappa)
{
	double *w = weights(&q->data);

	if (q->data.n_blocks)
		widen(kappa, q->at, w, q->data.n_arms);
	free(w);
}

void quantile_widen_delta(const struct quantile_of *q, size_t arm, struct sweep_estimate *delta)
{
	double *w = must_calloc(q->data.n_arms, sizeof(*w));

	w[0] = -1;
	w[arm] = 1;
	if (q->data.n_blocks)
		widen(delta, q->at, w, q->data.n_arms);
	free(w);
}

void quantile_fill(const struct record *rec, const struct record_of *of,
		   const struct infer_data *data, struct sweep_target *target)
{
	struct pool p;
	double n;

	pool_make(rec, of, data, &p);
	n = fewest(&p);
	target->n_quantiles = SWEEP_QUANTILES;
	for (size_t i = 0; i < SWEEP_QUANTILES; i++) {
		struct sweep_quantile *q = &target->quantile[i];

		*q = (struct sweep_quantile){ shares[i],     SWEEP_UNKNOWN,
					      NAN,	     SWEEP_UNKNOWN,
					      SWEEP_UNKNOWN, .bound_ns = NAN,
					      .slower = NAN, .slower_delta = SWEEP_UNKNOWN };
		q->bucket_ns[0][0] = q->bucket_ns[0][1] = NAN;
		q->bucket_ns[1][0] = q->bucket_ns[1][1] = NAN;
		if (!p.h.n || p.lost > p.n_blocks / 4)
			snprintf(q->reason, sizeof(q->reason),
				 "the source has no buckets, or they "
				 "changed during the sweep");
		else if (p.n_blocks < 2)
			snprintf(q->reason, sizeof(q->reason), "too few blocks were completed");
		else if (n * (1 - q->share) < QUANTILE_BEYOND)
			snprintf(q->reason, sizeof(q->reason),
				 "%.0f responses in an arm, and %.0f are needed", n,
				 ceil(QUANTILE_BEYOND / (1 - q->share) - 1e-6));
		else
			fill(&p, q);
	}
	pool_free(&p);
}
