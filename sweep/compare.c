/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <stdlib.h>
#include <string.h>
#include "stat.h"
#include "src/base/must.h"

#define LEVEL 0.05

/* b - a by MOVER; unknown where an interval is. */
static struct sweep_estimate mover(const struct sweep_estimate *a, const struct sweep_estimate *b)
{
	struct sweep_estimate d = { b->est - a->est, NAN, NAN };

	d.lo = d.est - hypot(b->est - b->lo, a->hi - a->est);
	d.hi = d.est + hypot(b->hi - b->est, a->est - a->lo);
	return d;
}

/* Two-sided p of "no difference", as if the half width towards 0 were 1.96 standard errors. */
static double mover_p(const struct sweep_estimate *d)
{
	double half = d->est > 0 ? d->est - d->lo : d->hi - d->est, z;

	if (!isfinite(d->est) || isnan(half))
		return NAN;
	if (!(half > 0))
		return d->est == 0 ? 1 : 0;
	z = fabs(d->est) / half * stat_normal_quantile(0.975);
	return 2 * stat_normal_cdf(-z);
}

/* A slack that was not found is a range without an estimate: the least and the most it may be. */
static bool is_range(const struct sweep_estimate *e)
{
	return isnan(e->est) && !isnan(e->lo) && !isnan(e->hi);
}

static struct sweep_estimate slack_difference(const struct sweep_estimate *a,
					      const struct sweep_estimate *b)
{
	if (!is_range(a) && !is_range(b))
		return mover(a, b);
	return (struct sweep_estimate){ NAN, b->lo - a->hi, b->hi - a->lo };
}

/* Ranges that do not touch differ for certain; ranges that touch are no evidence. */
static double slack_p(const struct sweep_estimate *d)
{
	if (!isnan(d->est))
		return mover_p(d);
	return d->lo > 0 || d->hi < 0 ? 0 : NAN;
}

static const struct sweep_target *find(const struct sweep_result *res, const char *spec, size_t nth)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (!strcmp(res->target[i].spec, spec) && nth-- == 0)
			return &res->target[i];
	return NULL;
}

/* How many targets before this one have the same spec: the second is matched with the second. */
static size_t nth_of(const struct sweep_result *res, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < at; i++)
		n += !strcmp(res->target[i].spec, res->target[at].spec);
	return n;
}

static void row_fill(struct compare_row *row)
{
	const struct sweep_target *a = row->a, *b = row->b;

	row->kappa = row->slack_ns = row->t0_ratio = SWEEP_UNKNOWN;
	row->kappa_p = row->slack_p = NAN;
	if (!a || !b)
		return;
	row->kappa = mover(&a->kappa, &b->kappa);
	row->slack_ns = slack_difference(&a->slack_ns, &b->slack_ns);
	row->kappa_p = mover_p(&row->kappa);
	row->slack_p = slack_p(&row->slack_ns);
	if (a->t0_ns > 0)
		row->t0_ratio.est = b->t0_ns / a->t0_ns - 1;
	row->verdict_changed = a->verdict != b->verdict;
}

static enum compare_state state_of(double p)
{
	if (isnan(p))
		return COMPARE_UNKNOWN;
	return p <= LEVEL ? COMPARE_CHANGED : COMPARE_SAME;
}

/* Holm over each of the two families. */
static void judge(struct compare *cmp)
{
	double *p = must_calloc(cmp->n_rows, sizeof(*p));

	for (size_t i = 0; i < cmp->n_rows; i++)
		p[i] = cmp->row[i].kappa_p;
	stat_holm(p, cmp->n_rows);
	for (size_t i = 0; i < cmp->n_rows; i++) {
		cmp->row[i].kappa_p = p[i];
		cmp->row[i].kappa_state = state_of(p[i]);
		p[i] = cmp->row[i].slack_p;
	}
	stat_holm(p, cmp->n_rows);
	for (size_t i = 0; i < cmp->n_rows; i++) {
		struct compare_row *row = &cmp->row[i];

		row->slack_p = p[i];
		row->slack_state = state_of(p[i]);
		cmp->changed += row->kappa_state == COMPARE_CHANGED ||
				row->slack_state == COMPARE_CHANGED;
	}
	free(p);
}

void compare_results(const struct sweep_result *a, const struct sweep_result *b,
		     struct compare *out)
{
	*out = (struct compare){ .row = must_calloc(a->n_targets + b->n_targets,
						    sizeof(*out->row)) };
	for (size_t i = 0; i < a->n_targets; i++) {
		struct compare_row *row = &out->row[out->n_rows++];

		row->spec = a->target[i].spec;
		row->a = &a->target[i];
		row->b = find(b, a->target[i].spec, nth_of(a, i));
		row_fill(row);
	}
	for (size_t i = 0; i < b->n_targets; i++) {
		struct compare_row *row = &out->row[out->n_rows];

		if (find(a, b->target[i].spec, nth_of(b, i)))
			continue;
		row->spec = b->target[i].spec;
		row->b = &b->target[i];
		row_fill(row);
		out->n_rows++;
	}
	judge(out);
}

void compare_free(struct compare *cmp)
{
	free(cmp->row);
	*cmp = (struct compare){ 0 };
}
