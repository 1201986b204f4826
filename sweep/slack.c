/* SPDX-License-Identifier: MIT */
#include "slack.h"

#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

#define GRID	   400
#define DELTA_MIN  7.0	/* of AICc, before a slack is reported */
#define QUEUE_MOST 0.95 /* the largest dose, as a share of the one that saturates */

/*
 * All properties of the cells that RSS(s) needs. T is centred within its block, so only arm means
 * and a constant remain of it.
 */
struct hinge {
	bool queue; /* the shape is that of a queue, and s is 1 / m */
	size_t arms;
	double n; /* contrasts: blocks * (arms - 1) */
	double blocks;
	double *x, *t;		 /* one per arm; t: mean of centred T */
	double *f;		 /* scratch */
	double total_ss;	 /* of centred T over all cells */
	double floor_ss;	 /* caused by rounding alone */
	double top, next, first; /* largest, second largest, smallest dose */
};

static double block_mean(const struct infer_data *data, size_t b)
{
	double sum = 0;

	for (size_t a = 0; a < data->n_arms; a++)
		sum += data->cell[b * data->n_arms + a].t;
	return sum / (double)data->n_arms;
}

static void hinge_doses(struct hinge *h)
{
	h->top = h->next = 0;
	h->first = INFINITY;
	for (size_t a = 1; a < h->arms; a++) {
		if (h->x[a] > h->top) {
			h->next = h->top;
			h->top = h->x[a];
		} else if (h->x[a] > h->next) {
			h->next = h->x[a];
		}
		h->first = fmin(h->first, h->x[a]);
	}
}

static void hinge_open(struct hinge *h, const struct infer_data *data)
{
	*h = (struct hinge){ .arms = data->n_arms };
	h->x = must_calloc(h->arms, sizeof(double));
	h->t = must_calloc(h->arms, sizeof(double));
	h->f = must_calloc(h->arms, sizeof(double));
	for (size_t b = 0; b < data->n_blocks; b++) {
		double mean;

		if (!infer_usable(data, b))
			continue;
		mean = block_mean(data, b);
		h->blocks++;
		for (size_t a = 0; a < h->arms; a++) {
			double t = data->cell[b * h->arms + a].t - mean;

			h->t[a] += t;
			h->total_ss += t * t;
		}
	}
	for (size_t a = 0; a < h->arms; a++) {
		h->t[a] /= h->blocks;
		h->x[a] = infer_level(data, a).x;
	}
	h->n = h->blocks * (double)(h->arms - 1) -
	       (double)(data->adjust ? data->adjust->n : 0); /* slopes that were fitted before */
	h->floor_ss = h->n * data->resolution_ns * data->resolution_ns / 48;
	hinge_doses(h);
}

static void hinge_close(struct hinge *h)
{
	free(h->x);
	free(h->t);
	free(h->f);
}

/* Residual sum of squares with the break at s, the slope at its best; *slope may be NULL. */
static double hinge_rss(const struct hinge *h, double s, double *slope)
{
	double mean = 0, ff = 0, ft = 0;

	for (size_t a = 0; a < h->arms; a++) {
		h->f[a] = h->queue ? h->x[a] / (1 - s * h->x[a]) : fmax(0, h->x[a] - s);
		mean += h->f[a] / (double)h->arms;
	}
	for (size_t a = 0; a < h->arms; a++) {
		ff += (h->f[a] - mean) * (h->f[a] - mean);
		ft += (h->f[a] - mean) * h->t[a];
	}
	if (slope)
		*slope = ff > 0 ? ft / ff : NAN;
	if (!(ff > 0))
		return h->total_ss;
	return fmax(h->total_ss - h->blocks * ft * ft / ff, h->floor_ss);
}

/* The best s: a grid, then a golden section around its best point. */
static double hinge_best(const struct hinge *h)
{
	const double golden = 0.6180339887498949;
	double best = 0, rss = hinge_rss(h, 0, NULL), step = h->top / GRID, lo, hi;

	for (int i = 1; i < GRID; i++) {
		double r = hinge_rss(h, i * step, NULL);

		if (r < rss) {
			rss = r;
			best = i * step;
		}
	}
	lo = fmax(0, best - step);
	hi = fmin(h->top * (1 - 1e-9), best + step);
	for (int i = 0; i < 50; i++) {
		double a = hi - golden * (hi - lo), b = lo + golden * (hi - lo);

		if (hinge_rss(h, a, NULL) < hinge_rss(h, b, NULL))
			hi = b;
		else
			lo = a;
	}
	return hinge_rss(h, (lo + hi) / 2, NULL) < rss ? (lo + hi) / 2 : best;
}

/* Where RSS crosses the limit between a (below it) and b (above it). */
static double crossing(const struct hinge *h, double limit, double a, double b)
{
	for (int i = 0; i < 50; i++) {
		double mid = (a + b) / 2;

		if (hinge_rss(h, mid, NULL) <= limit)
			a = mid;
		else
			b = mid;
	}
	return (a + b) / 2;
}

/* The hull of all s that the profile allows, within [0, top]. */
static void profile(const struct hinge *h, double best, struct sweep_estimate *out)
{
	double f = stat_f_quantile(0.95, 1, h->n - 2);
	double limit = hinge_rss(h, best, NULL) * (1 + f / (h->n - 2)), step = h->top / GRID;

	out->est = out->lo = out->hi = best;
	for (int i = 0; i <= GRID; i++) {
		double s = i * step;

		if (hinge_rss(h, s, NULL) > limit)
			continue;
		out->lo = fmin(out->lo, s);
		out->hi = fmax(out->hi, s);
	}
	if (out->lo > 0 && hinge_rss(h, fmax(0, out->lo - step), NULL) > limit)
		out->lo = crossing(h, limit, out->lo, fmax(0, out->lo - step));
	if (out->hi < h->top && hinge_rss(h, fmin(h->top, out->hi + step), NULL) > limit)
		out->hi = crossing(h, limit, out->hi, fmin(h->top, out->hi + step));
}

static double aicc(double rss, double n, double p)
{
	return n * log(rss / n) + 2 * p + 2 * p * (p + 1) / (n - p - 1);
}

/* Doses strictly above s. */
static size_t doses_above(const struct hinge *h, double s)
{
	size_t n = 0;

	for (size_t a = 1; a < h->arms; a++)
		n += h->x[a] > s;
	return n;
}

void slack_origin(const struct infer_data *data, struct rng *rng, struct slack_fit *fit)
{
	infer_kappa(data, rng, &fit->origin);
	if (fit->all_above)
		fit->origin.kappa.lo = fmin(fit->origin.kappa.lo, 0);
}

/*
 * SHAM and the doses that certainly lie below the slack, as data of their own. If even the smallest
 * may lie above it, the slope before it may be as low as 0.
 */
static void fit_origin(const struct infer_data *data, const struct hinge *h, double s,
		       struct rng *rng, struct slack_fit *out)
{
	size_t arms = 0, *keep = must_calloc(h->arms, sizeof(*keep));
	struct infer_data sub = *data;
	struct infer_cell *cell;

	for (size_t a = 0; a < h->arms; a++)
		if (a == 0 || h->x[a] <= fmax(s, h->first))
			keep[arms++] = a;
	cell = must_calloc(data->n_blocks * arms, sizeof(*cell));
	for (size_t b = 0; b < data->n_blocks; b++)
		for (size_t a = 0; a < arms; a++)
			cell[b * arms + a] = data->cell[b * h->arms + keep[a]];
	sub.cell = cell;
	sub.n_arms = arms;
	out->below = keep[arms - 1];
	out->all_above = h->first > s;
	slack_origin(&sub, rng, out);
	free(cell);
	free(keep);
}

/* No slack is seen, and how large an unseen one may be; or nothing is seen at all. */
static void judge_line(const struct infer_kappa *line, double threshold, const struct hinge *h,
		       const struct sweep_estimate *range, struct slack_fit *out)
{
	if (line->kappa.hi < threshold) {
		out->kind = SLACK_BEYOND;
		out->slack_ns = (struct sweep_estimate){ NAN, h->top, INFINITY };
	} else if (line->kappa.lo > 0 && h->arms < 3) {
		out->why = "one dose does not tell a slack from a slope";
	} else if (line->kappa.lo > 0) {
		out->kind = SLACK_NONE;
		out->slack_ns = (struct sweep_estimate){ 0, 0, range->hi };
	} else {
		out->why = "no response was seen, nor its absence shown";
	}
}

/* Widens an interval to the slopes that the profile allows with the parameter of the shape at s:
 * RSS(k, s) = RSS(s) + blocks * ff * (k - k(s))^2. */
static void slopes_allowed(const struct hinge *h, double limit, double s,
			   struct sweep_estimate *out)
{
	double slope, ff = 0, mean = 0, half, left = limit - hinge_rss(h, s, &slope);

	if (left < 0)
		return;
	for (size_t a = 0; a < h->arms; a++)
		mean += h->f[a] / (double)h->arms;
	for (size_t a = 0; a < h->arms; a++)
		ff += (h->f[a] - mean) * (h->f[a] - mean);
	half = sqrt(left / (h->blocks * ff));
	out->lo = fmin(out->lo, slope - half);
	out->hi = fmax(out->hi, slope + half);
}

/* The slope beyond the slack. Slope and break move together, so its interval is the hull of what
 * the profile allows at every break. */
static struct sweep_estimate slope_interval(const struct hinge *h, double best)
{
	double f = stat_f_quantile(0.95, 1, h->n - 2), rss = hinge_rss(h, best, NULL);
	double limit = rss * (1 + f / (h->n - 2));
	struct sweep_estimate out;

	hinge_rss(h, best, &out.est);
	out.lo = out.hi = out.est;
	for (int i = 0; i < GRID; i++) {
		double s = i * h->top / GRID;

		if (s < h->next)
			slopes_allowed(h, limit, s, &out);
	}
	return out;
}

static void judge_hinge(const struct infer_data *data, const struct hinge *h, struct rng *rng,
			const struct sweep_estimate *range, struct slack_fit *out)
{
	fit_origin(data, h, range->lo, rng, out);
	out->slack_ns = *range;
	if (range->hi < h->next) { /* two doses above it wherever it is */
		out->kind = SLACK_FOUND;
		out->beyond = slope_interval(h, range->est);
		return;
	}
	out->kind = SLACK_BRACKET;
	out->slack_ns.est = NAN;
	out->slack_ns.hi = h->top;
	out->why = "fewer than two doses lie above it";
}

void slack_fit(const struct infer_data *data, const struct infer_kappa *line, double threshold,
	       struct rng *rng, struct slack_fit *out)
{
	struct sweep_estimate range;
	struct hinge h;
	double best;

	*out = (struct slack_fit){ .slack_ns = SWEEP_UNKNOWN,
				   .beyond = SWEEP_UNKNOWN,
				   .origin = *line,
				   .delta_aicc = NAN };
	if (line->why || line->n < 2) {
		out->why = line->why;
		return;
	}
	hinge_open(&h, data);
	best = hinge_best(&h);
	profile(&h, best, &range);
	out->above = doses_above(&h, best);
	if (h.arms > 2 && h.n > 4)
		out->delta_aicc = aicc(fmax(hinge_rss(&h, 0, NULL), 1e-300), h.n, 2) -
				  aicc(fmax(hinge_rss(&h, best, NULL), 1e-300), h.n, 3);
	if (out->delta_aicc >= DELTA_MIN && range.lo > 0)
		judge_hinge(data, &h, rng, &range, out);
	else
		judge_line(line, threshold, &h, &range, out);
	hinge_close(&h);
}

/* ---- a queue ---- */

/* The slope at no delay for each s that the profile allows, and its hull. */
static void queue_profile(const struct hinge *h, double best, struct queue_shape *out)
{
	double f = stat_f_quantile(0.95, 1, h->n - 2), step = QUEUE_MOST / h->top / GRID;
	double limit = hinge_rss(h, best, &out->kappa.est) * (1 + f / (h->n - 2));

	out->kappa.lo = out->kappa.hi = out->kappa.est;
	for (int i = 0; i <= GRID; i++)
		slopes_allowed(h, limit, i * step, &out->kappa);
}

bool queue_shape(const struct infer_data *data, struct queue_shape *out)
{
	struct hinge h;
	double best = 0, rss, line;

	*out = (struct queue_shape){ SWEEP_UNKNOWN, NAN, NAN };
	hinge_open(&h, data);
	h.queue = true;
	if (h.arms < 3 || !(h.n > 4) || !(h.top > 0)) {
		hinge_close(&h);
		return false;
	}
	rss = line = hinge_rss(&h, 0, NULL);
	for (int i = 1; i <= GRID; i++) {
		double s = QUEUE_MOST / h.top * i / GRID, r = hinge_rss(&h, s, NULL);

		if (r < rss) {
			rss = r;
			best = s;
		}
	}
	queue_profile(&h, best, out);
	out->delta_aicc = aicc(fmax(line, 1e-300), h.n, 2) - aicc(fmax(rss, 1e-300), h.n, 3);
	out->most_ns = best > 0 ? 1 / best : INFINITY;
	hinge_close(&h);
	return true;
}
