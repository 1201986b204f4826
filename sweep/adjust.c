/* SPDX-License-Identifier: MIT */
#include "adjust.h"

#include <stdio.h>
#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

#define LEVEL	  0.975
#define DF_LEAST  4
#define SWEEPS	  200	/* of centring by block and by arm */
#define EXACT	  1e-10 /* of the spread: where centring ends */
#define STILL	  1e-6	/* of the mean: a spread that is rounding */
#define COLLINEAR 1e-6	/* of the variance: what is left beside the others */

enum { MOST = INFER_COVARIATES + 1, WIDTH = 1 + MOST }; /* T, the covariates, what was injected */

/* All cells, with the blocks and the arms numbered over all experiments. */
struct table {
	size_t n, blocks, arms, experiments;
	size_t *block, *arm;
	double (*v)[WIDTH];
	size_t width;
};

static void why(struct sweep_adjust *out, const char *text)
{
	out->used = false;
	snprintf(out->reason, sizeof(out->reason), "%s", text);
}

/* ---- the cells ---- */

static void table_add(struct table *t, const struct record_cell *cell, size_t n)
{
	int columns = 0, blocks = 0;

	t->block = must_realloc(t->block, (t->n + n) * sizeof(*t->block));
	t->arm = must_realloc(t->arm, (t->n + n) * sizeof(*t->arm));
	t->v = must_realloc(t->v, (t->n + n) * sizeof(*t->v));
	for (size_t i = 0; i < n; i++, t->n++) {
		t->block[t->n] = t->blocks + (size_t)cell[i].block;
		t->arm[t->n] = t->arms + (size_t)cell[i].column;
		t->v[t->n][0] = cell[i].t;
		for (size_t k = 0; k + 2 < t->width; k++)
			t->v[t->n][k + 1] = cell[i].c[k];
		t->v[t->n][t->width - 1] = cell[i].x;
		columns = cell[i].column >= columns ? cell[i].column + 1 : columns;
		blocks = cell[i].block >= blocks ? cell[i].block + 1 : blocks;
	}
	t->blocks += (size_t)blocks;
	t->arms += (size_t)columns;
	t->experiments += n > 0;
}

static void table_make(const struct record *rec, struct table *t)
{
	int most = -1;

	*t = (struct table){ .width = 2 + rec->n_covariates };
	for (size_t i = 0; i < rec->n; i++)
		most = rec->row[i].win.experiment > most ? rec->row[i].win.experiment : most;
	for (int e = 0; e <= most; e++) {
		struct record_cell *cell;
		size_t n = record_cells(rec, e, &cell);

		if (n)
			table_add(t, cell, n);
		free(cell);
	}
}

static void table_free(struct table *t)
{
	free(t->block);
	free(t->arm);
	free(t->v);
}

/* How many of these numbers occur. */
static size_t distinct(const size_t *of, size_t n, size_t room)
{
	bool *seen = must_calloc(room + 1, sizeof(*seen));
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += !seen[of[i]];
		seen[of[i]] = true;
	}
	free(seen);
	return count;
}

/* Subtracts the mean of each group; the largest of them, column by column, into *most. */
static void centre_by(struct table *t, const size_t *of, size_t groups, double *most)
{
	double(*mean)[WIDTH] = must_calloc(groups + 1, sizeof(*mean));
	double *n = must_calloc(groups + 1, sizeof(*n));

	for (size_t i = 0; i < t->n; i++) {
		n[of[i]]++;
		for (size_t k = 0; k < t->width; k++)
			mean[of[i]][k] += t->v[i][k];
	}
	for (size_t g = 0; g < groups; g++)
		for (size_t k = 0; k < t->width && n[g] > 0; k++) {
			mean[g][k] /= n[g];
			most[k] = fmax(most[k], fabs(mean[g][k]));
		}
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->width; k++)
			t->v[i][k] -= mean[of[i]][k];
	free(mean);
	free(n);
}

static double product(const struct table *t, size_t p, size_t q)
{
	double sum = 0;

	for (size_t i = 0; i < t->n; i++)
		sum += t->v[i][p] * t->v[i][q];
	return sum;
}

/* By block and arm: in turn, until neither changes anything, as not each block has each arm. */
static void centre(struct table *t)
{
	bool still = false;

	for (int i = 0; i < SWEEPS && !still; i++) {
		double most[WIDTH] = { 0 };

		centre_by(t, t->block, t->blocks, most);
		memset(most, 0, sizeof(most));
		centre_by(t, t->arm, t->arms, most);
		still = true;
		for (size_t k = 0; k < t->width; k++)
			still &= most[k] <= EXACT * sqrt(product(t, k, k) / (double)t->n) ||
				 most[k] == 0;
	}
}

/* ---- the tests ---- */

struct test {
	double p, est, share; /* of no change; of T per ns; of the largest dose, by the level */
};

static struct test test_of(const struct record *rec, const struct record_of *of, size_t covariate)
{
	struct record_view view = { LANE_ALL, -1, .covariate = covariate };
	struct test test = { NAN, NAN, NAN };
	struct infer_kappa kappa;
	struct infer_data data;

	record_data(rec, of, &view, &data, NULL);
	infer_kappa(&data, NULL, &kappa);
	if (!kappa.why) {
		test.p = kappa.p_t;
		test.est = kappa.kappa.est;
		test.share = infer_delta(&data, data.n_arms - 1, NULL).est /
			     infer_level(&data, 0).t;
	}
	record_data_free(&data);
	return test;
}

/* ---- the fit ---- */

struct fit {
	size_t of;		/* the column that they explain: 0, T */
	size_t n, column[MOST]; /* used; of the table */
	size_t covariates;	/* of them: the first; the last one may be what was injected */
	double cc[MOST][MOST], inverse[MOST][MOST];
	double slope[MOST], df, left;
};

/* By Gauss and Jordan; a pivot that is nothing beside its diagonal: that row, else the size. */
static size_t invert(double m[][MOST], size_t n, double out[][MOST])
{
	double a[MOST][2 * MOST] = { 0 };

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++)
			a[i][k] = m[i][k];
		a[i][n + i] = 1;
	}
	for (size_t i = 0; i < n; i++) {
		double pivot = a[i][i];

		if (!(pivot > COLLINEAR * m[i][i]))
			return i;
		for (size_t k = 0; k < 2 * n; k++)
			a[i][k] /= pivot;
		for (size_t r = 0; r < n; r++) {
			double by = r == i ? 0 : a[r][i];

			for (size_t k = 0; k < 2 * n; k++)
				a[r][k] -= by * a[i][k];
		}
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			out[i][k] = a[i][n + k];
	return n;
}

/* The covariates that may be used, and do move: without those that the others make up. */
static void choose(const struct table *t, size_t covariates, struct sweep_adjust *out,
		   struct fit *f)
{
	size_t bad;

	for (size_t k = 1; k < t->width; k++) {
		double spread = sqrt(product(t, k, k) / (double)t->n);

		if (k > covariates && spread > 0)
			f->column[f->n++] = k;
		if (k > covariates || !out[k - 1].used)
			continue;
		if (spread > STILL * fabs(out[k - 1].mean))
			f->column[f->n++] = k;
		else
			why(&out[k - 1], "it did not change within the blocks");
	}
	for (;;) {
		for (size_t i = 0; i < f->n; i++)
			for (size_t k = 0; k < f->n; k++)
				f->cc[i][k] = product(t, f->column[i], f->column[k]);
		bad = invert(f->cc, f->n, f->inverse);
		if (bad == f->n)
			break;
		if (f->column[bad] <= covariates)
			why(&out[f->column[bad] - 1], "those before it say the same");
		f->n--;
		for (size_t i = bad; i < f->n; i++)
			f->column[i] = f->column[i + 1];
	}
	for (size_t i = 0; i < f->n; i++)
		f->covariates += f->column[i] <= covariates;
}

static double residual(const struct table *t, const struct fit *f, size_t i)
{
	double e = t->v[i][f->of];

	for (size_t k = 0; k < f->n; k++)
		e -= f->slope[k] * t->v[i][f->column[k]];
	return e;
}

static void solve(const struct table *t, struct fit *f)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->n; k++)
			f->slope[i] += f->inverse[i][k] * product(t, f->column[k], f->of);
	for (size_t i = 0; i < t->n; i++)
		f->left += residual(t, f, i) * residual(t, f, i);
}

/* Noise that lasts for some windows makes the cells of a block alike: errors by whole blocks. */
static void errors(const struct table *t, const struct fit *f, struct infer_adjust *cost)
{
	double(*g)[MOST] = must_calloc(t->blocks + 1, sizeof(*g));
	double blocks = (double)distinct(t->block, t->n, t->blocks);

	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < f->n; k++)
			for (size_t q = 0; q < f->n; q++)
				g[t->block[i]][k] += f->inverse[k][q] * t->v[i][f->column[q]] *
						     residual(t, f, i);
	for (size_t i = 0; i < f->covariates; i++)
		for (size_t k = 0; k < f->covariates; k++) {
			cost->inverse[i][k] = f->inverse[i][k];
			cost->error[0][i][k] = f->left / f->df * f->inverse[i][k];
			for (size_t b = 0; b < t->blocks; b++)
				cost->error[1][i][k] += g[b][i] * g[b][k] * blocks / (blocks - 1);
		}
	free(g);
}

/* Of the variance that is left without the covariates, and with as few slopes. */
static double explained(const struct table *t, const struct fit *f)
{
	struct fit without = { .of = f->of, .df = f->df + (double)f->covariates };

	for (size_t i = f->covariates; i < f->n; i++)
		without.column[without.n++] = f->column[i];
	for (size_t i = 0; i < without.n; i++)
		without.inverse[i][i] = 1 / product(t, without.column[i], without.column[i]);
	solve(t, &without);
	return fmax(0, 1 - f->left / f->df / (without.left / without.df));
}

static void keep(const struct table *t, const struct fit *f, struct record_adjust *adjust,
		 struct sweep_adjust *out)
{
	double q = stat_t_quantile(LEVEL, f->df);

	adjust->n = adjust->cost.n = f->covariates;
	errors(t, f, &adjust->cost);
	for (size_t i = 0; i < f->covariates; i++) {
		struct sweep_adjust *o = &out[f->column[i] - 1];
		double half = q *
			      sqrt(fmax(adjust->cost.error[0][i][i], adjust->cost.error[1][i][i]));

		adjust->which[i] = f->column[i] - 1;
		adjust->slope[i] = f->slope[i];
		adjust->mean[i] = o->mean;
		o->slope = (struct sweep_estimate){ f->slope[i], f->slope[i] - half,
						    f->slope[i] + half };
	}
}

/* The slopes of T, or of a covariate in its place, over those that may be used. */
static void fit(struct record *rec, const struct table *t, size_t of, struct sweep_adjust *out)
{
	struct fit f = { .of = of };

	rec->adjust = (struct record_adjust){ .n = 0 };
	if (t->n)
		choose(t, rec->n_covariates, out, &f);
	f.df = (double)(t->n + t->experiments) - (double)distinct(t->block, t->n, t->blocks) -
	       (double)distinct(t->arm, t->n, t->arms) - (double)f.n;
	for (size_t k = 0; k < rec->n_covariates && !(f.df >= DF_LEAST); k++)
		if (out[k].used)
			why(&out[k], "there are too few blocks");
	if (!f.covariates || !(f.df >= DF_LEAST))
		return;
	solve(t, &f);
	keep(t, &f, &rec->adjust, out);
	rec->adjust.explained = explained(t, &f);
}

/* Of a covariate less what follows from the others; of == its number and 1, as in a table. */
static struct test test_beside(struct record *rec, const struct table *t, size_t of,
			       const struct sweep_adjust *all, const struct record_of *where)
{
	struct sweep_adjust others[SWEEP_ADJUST];
	struct test test;

	memcpy(others, all, sizeof(others));
	others[of - 1].used = false;
	fit(rec, t, of, others);
	test = test_of(rec, where, of);
	rec->adjust = (struct record_adjust){ .n = 0 };
	return test;
}

/*
 * Is any of them moved by a delay? By itself, and then beside the others: what these explain is
 * noise that may cover the effect of the delay, and is taken out of T, too.
 */
static void test_moved(struct record *rec, const struct table *t, const struct record_of *of,
		       size_t n_of, bool beside, struct sweep_adjust *out)
{
	size_t n = rec->n_covariates;
	double *p = must_calloc(n * n_of, sizeof(*p));
	struct test *test = must_calloc(n * n_of, sizeof(*test));

	for (size_t i = 0; i < n * n_of; i++) {
		p[i] = NAN;
		if (!out[i % n].used)
			continue;
		test[i] = beside ? test_beside(rec, t, i % n + 1, out, &of[i / n]) :
				   test_of(rec, &of[i / n], i % n + 1);
		p[i] = test[i].p;
	}
	stat_holm(p, n * n_of);
	for (size_t i = 0; i < n * n_of; i++) {
		struct sweep_adjust *o = &out[i % n];

		if (!(p[i] < (beside ? ADJUST_BESIDE : ADJUST_MOVED)) || o->moved)
			continue;
		why(o, "a delay changes it");
		o->moved = true;
		o->moved_target = of[i / n].target;
		o->moved_share = test[i].share;
		o->moved_p = p[i];
	}
	free(test);
	free(p);
}

/* A delay that slowed the program, by what T is adjusted to. */
static bool slowed(const struct record *rec, const struct record_of *of, size_t n_of)
{
	for (size_t i = 0; i < n_of; i++) {
		struct test test = test_of(rec, &of[i], 0);

		if (test.est > 0 && test.p < ADJUST_SLOWED)
			return true;
	}
	return false;
}

static void means(const struct table *t, size_t covariates, struct sweep_adjust *out)
{
	for (size_t k = 0; k < covariates && t->n; k++) {
		out[k].mean = 0;
		for (size_t i = 0; i < t->n; i++)
			out[k].mean += t->v[i][k + 1] / (double)t->n;
	}
}

void adjust_fit(struct record *rec, const struct record_of *of, size_t n_of,
		struct sweep_adjust *out)
{
	struct table t;

	rec->adjust = (struct record_adjust){ .n = 0 };
	for (size_t k = 0; k < rec->n_covariates; k++)
		out[k] = (struct sweep_adjust){ .rate = rec->rate[k],
						.used = true,
						.mean = NAN,
						.slope = SWEEP_UNKNOWN,
						.moved_share = NAN,
						.moved_p = NAN };
	if (!rec->n_covariates)
		return;
	table_make(rec, &t);
	means(&t, rec->n_covariates, out);
	centre(&t);
	test_moved(rec, &t, of, n_of, false, out);
	if (rec->n_covariates > 1)
		test_moved(rec, &t, of, n_of, true, out);
	fit(rec, &t, 0, out);
	table_free(&t);
	if (!rec->adjust.n || slowed(rec, of, n_of))
		return;
	rec->adjust = (struct record_adjust){ .n = 0 };
	for (size_t k = 0; k < rec->n_covariates; k++)
		if (out[k].used)
			why(&out[k], "no delay was seen to slow the program, and so it is not "
				     "known whether it follows the program's speed");
}

/* ---- the pilot ---- */

static void pilot_table(const struct pilot_window *win, size_t n, struct table *t)
{
	t->block = must_calloc(n + 1, sizeof(*t->block));
	t->arm = must_calloc(n + 1, sizeof(*t->arm));
	t->v = must_calloc(n + 1, sizeof(*t->v));
	t->blocks = t->arms = 1;
	for (size_t i = 0; i < n; i++) {
		if (!(win[i].items > 0))
			continue;
		t->v[t->n][0] = win[i].t_ns;
		for (size_t k = 0; k + 1 < t->width; k++)
			t->v[t->n][k + 1] = win[i].c[k];
		t->n++;
	}
}

void adjust_pilot(struct pilot_window *win, size_t n, size_t covariates)
{
	struct sweep_adjust out[SWEEP_ADJUST] = { 0 };
	struct table t = { .width = 1 + covariates };
	struct fit f = { 0 };

	pilot_table(win, n, &t);
	for (size_t k = 0; k < covariates && t.n; k++) {
		out[k].used = true;
		for (size_t i = 0; i < t.n; i++)
			out[k].mean += t.v[i][k + 1] / (double)t.n;
	}
	if (covariates && t.n > 4 * covariates + DF_LEAST) {
		centre(&t);
		choose(&t, covariates, out, &f);
		solve(&t, &f);
	}
	for (size_t i = 0; i < n && f.n; i++) {
		for (size_t k = 0; k < f.n; k++)
			win[i].t_ns -= f.slope[k] *
				       (win[i].c[f.column[k] - 1] - out[f.column[k] - 1].mean);
		if (win[i].items > 0)
			win[i].time_ns = win[i].t_ns * win[i].items;
	}
	table_free(&t);
}
