/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

#define GROWTH_RATIO   1.5
#define GROWTH_WINDOWS 12
#define SERVERS_MOST   4096
#define GROWTH_POINTS  400 /* every pair of them is looked at */

/* Variance of a sum of so many, by that of one: both their number and their length vary. */
#define SCATTER 2

/* ---- growth ---- */

/* The mean responses of the windows without a delay, and when they were. */
struct series {
	double *w, *at;
	size_t n;
};

static void series_make(const struct record *rec, struct series *s)
{
	*s = (struct series){ must_calloc(rec->n, sizeof(double)),
			      must_calloc(rec->n, sizeof(double)), 0 };
	for (size_t i = 0; i < rec->n; i++) {
		const struct sweep_window *win = &rec->row[i].win;

		if (win->arm == ARM_DOSE || !(win->response_count > 0))
			continue;
		s->w[s->n] = win->response_sum_ns / win->response_count;
		s->at[s->n++] = (double)win->end_ns;
	}
}

/* Of many windows the means of as many in a row. */
static void series_pool(struct series *s)
{
	size_t each = (s->n + GROWTH_POINTS - 1) / GROWTH_POINTS, n = 0;

	for (size_t i = 0; each > 1 && i + each <= s->n; i += each, n++) {
		s->w[n] = stat_mean(s->w + i, each);
		s->at[n] = stat_mean(s->at + i, each);
	}
	s->n = each > 1 ? n : s->n;
}

static double mean_slope(const struct series *s)
{
	double *slope = must_calloc(s->n * s->n / 2 + 1, sizeof(*slope)), median;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		for (size_t k = i + 1; k < s->n; k++)
			if (s->at[k] > s->at[i])
				slope[n++] = (s->w[k] - s->w[i]) / (s->at[k] - s->at[i]);
	median = n ? stat_median(slope, n) : NAN;
	free(slope);
	return median;
}

struct queue_growth queue_growth(const struct record *rec)
{
	struct queue_growth out = { NAN, NAN, NAN, false };
	struct series s;

	series_make(rec, &s);
	series_pool(&s);
	if (s.n >= GROWTH_WINDOWS) {
		size_t third = s.n / 3;

		out.slope = mean_slope(&s);
		out.p = stat_trend_p(s.w, s.n);
		out.ratio = stat_mean(s.w + s.n - third, third) / stat_mean(s.w, third);
		out.grows = out.slope > QUEUE_GROWTH && out.p < QUEUE_LEVEL &&
			    out.ratio > GROWTH_RATIO;
	}
	free(s.w);
	free(s.at);
	return out;
}

/* ---- flow ---- */

enum { RATE, NOW, FELL, COLUMNS };

/*
 * A window with its guard: completions a second, the share of the time that was injected into it,
 * and by how much more that was in the window before: then a queue is worked off.
 */
struct point {
	double v[COLUMNS];
	int block;
};

static double load(const struct record_row *row)
{
	double sum = 0;

	for (size_t l = 0; l < row->n_lanes && row->win.arm == ARM_DOSE; l++)
		sum += (double)row->lane[l].injected_ns;
	return sum / (double)row->win.time_ns;
}

static size_t points_make(const struct record *rec, int experiment, struct point *out)
{
	size_t n = 0;

	for (size_t i = 1; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i], *before = row - 1;
		double ns = (double)(row->win.end_ns - before->win.end_ns);

		if (row->win.experiment != experiment || row->win.block < 0 || !(row->since > 0) ||
		    !(ns > 0))
			continue;
		out[n++] = (struct point){ { row->since / ns * 1e9, load(row),
					     fmax(0, load(before) - load(row)) },
					   row->win.block };
	}
	return n;
}

/* Subtracts the means of each block; returns the number of blocks. */
static size_t centre(struct point *p, size_t n)
{
	size_t blocks = 0, to;

	for (size_t i = 0; i < n; i = to, blocks++) {
		double mean[COLUMNS] = { 0 };

		for (to = i; to < n && p[to].block == p[i].block; to++)
			for (int c = 0; c < COLUMNS; c++)
				mean[c] += p[to].v[c];
		for (size_t k = i; k < to; k++)
			for (int c = 0; c < COLUMNS; c++)
				p[k].v[c] -= mean[c] / (double)(to - i);
	}
	return blocks;
}

struct line {
	double m[COLUMNS][COLUMNS], det, slope[COLUMNS];
};

static bool line_fit(const struct point *p, size_t n, struct line *l)
{
	double(*m)[COLUMNS] = l->m;

	for (size_t i = 0; i < n; i++)
		for (int a = 0; a < COLUMNS; a++)
			for (int b = 0; b < COLUMNS; b++)
				m[a][b] += p[i].v[a] * p[i].v[b];
	l->det = m[NOW][NOW] * m[FELL][FELL] - m[NOW][FELL] * m[NOW][FELL];
	if (!(l->det > 1e-6 * m[NOW][NOW] * m[FELL][FELL]))
		return false;
	l->slope[NOW] = (m[RATE][NOW] * m[FELL][FELL] - m[RATE][FELL] * m[NOW][FELL]) / l->det;
	l->slope[FELL] = (m[RATE][FELL] * m[NOW][NOW] - m[RATE][NOW] * m[NOW][FELL]) / l->det;
	return true;
}

/* One-sided, by independent blocks: that the slope is above 0 (sign 1) or below. */
static double p_of(const struct point *p, size_t n, size_t blocks, const struct line *l, int which,
		   double sign)
{
	int other = which == NOW ? FELL : NOW;
	double scores = 0, score = 0, se;

	for (size_t i = 0; i < n; i++) {
		const double *v = p[i].v;
		double e = v[RATE] - l->slope[NOW] * v[NOW] - l->slope[FELL] * v[FELL];

		score += e * (v[which] * l->m[other][other] - v[other] * l->m[NOW][FELL]) / l->det;
		if (i + 1 < n && p[i + 1].block == p[i].block)
			continue;
		scores += score * score;
		score = 0;
	}
	se = sqrt(scores * (double)blocks / ((double)blocks - 1));
	return se > 0 ? 1 - stat_t_cdf(sign * l->slope[which] / se, (double)blocks - 1) : NAN;
}

struct queue_flow queue_flow(const struct record *rec, int experiment)
{
	struct queue_flow out = { NAN, NAN, NAN, NAN, false };
	struct point *p = must_calloc(rec->n, sizeof(*p));
	size_t n = points_make(rec, experiment, p), blocks;
	double most = 0, rate = 0;
	struct line line = { 0 };

	for (size_t i = 0; i < n; i++) {
		most = fmax(most, p[i].v[NOW]);
		rate += p[i].v[RATE] / (double)n;
	}
	blocks = centre(p, n);
	if (blocks >= 4 && most > 0 && line_fit(p, n, &line)) {
		out.during = line.slope[NOW] * most / rate;
		out.after = line.slope[FELL] * most / rate;
		out.during_p = p_of(p, n, blocks, &line, NOW, -1);
		out.after_p = p_of(p, n, blocks, &line, FELL, 1);
		out.saturated = out.during < -QUEUE_SHARE && out.during_p < QUEUE_LEVEL &&
				out.after > fmax(QUEUE_SHARE, -QUEUE_MADE_UP * out.during) &&
				out.after_p < QUEUE_LEVEL;
	}
	free(p);
	return out;
}

/* ---- Little's law ---- */

struct queue_level queue_level(const struct record *rec, const struct record_of *of, int column)
{
	double sum = 0, count = 0, ns = 0, busy = 0, squares = 0, windows = 0, mean, even;

	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (row->column != column || !record_has(rec, i, of))
			continue;
		sum += row->win.response_sum_ns;
		squares += row->win.response_sum_ns * row->win.response_sum_ns /
			   (double)row->win.time_ns;
		count += row->win.response_count;
		windows++;
		ns += (double)row->win.time_ns;
		busy += row->busy * (double)row->win.time_ns;
	}
	if (!(ns > 0))
		return (struct queue_level){ NAN, NAN, NAN, NAN };
	mean = sum / ns;
	even = fmax(0, squares / ns - mean * mean) / (mean * mean) - SCATTER * windows / count;
	return (struct queue_level){ mean, sqrt(fmax(0, even)), count / ns * 1e9, busy / ns };
}

/* The probability that a request waits, of M/M/c at utilisation u (Erlang C). */
static double waits(double servers, double u)
{
	double load = servers * u, blocked = 1;

	for (double k = 1; k <= servers; k++)
		blocked = load * blocked / (k + load * blocked);
	return blocked / (1 - u * (1 - blocked));
}

double queue_utilisation(double in_system, double servers)
{
	double lo = 0, hi = 1;

	servers = fmin(fmax(1, round(servers)), SERVERS_MOST);
	for (int i = 0; i < 40; i++) {
		double u = (lo + hi) / 2;

		if (servers * u + waits(servers, u) * u / (1 - u) / 2 < in_system)
			lo = u;
		else
			hi = u;
	}
	return lo;
}
