/* SPDX-License-Identifier: MIT */
/* record_carry(): is what an arm left in the pipeline felt in the next arm? */
#include <stdlib.h>
#include "record.h"
#include "src/base/must.h"

static double window_t(const struct record *rec, const struct record_row *row)
{
	if (rec->response)
		return row->win.response_count > 0 ?
			       row->win.response_sum_ns / row->win.response_count :
			       NAN;
	return row->win.items > 0 ? (double)row->win.time_ns / row->win.items : NAN;
}

static bool same_block(const struct record_row *a, const struct record_row *b)
{
	return a->win.experiment == b->win.experiment && a->win.block == b->win.block;
}

/* The end of the block that begins at `from`. */
static size_t block_end(const struct record *rec, size_t from)
{
	size_t to = from + 1;

	while (to < rec->n && same_block(&rec->row[to], &rec->row[from]))
		to++;
	return to;
}

/*
 * What a target's delay adds to T, a ns of it, in one experiment: targets that share blocks are
 * felt differently, and called differently often. 1 where it is the only one.
 */
struct slopes {
	double *slope; /* [experiment * n_targets + target] */
	size_t n_experiments, n_targets;
};

static double *slope_of(const struct slopes *slopes, const struct sweep_window *win)
{
	return &slopes->slope[(size_t)win->experiment * slopes->n_targets + (size_t)win->target];
}

static bool has_slope(const struct record_row *row)
{
	return row->column >= COLUMN_DOSE && row->win.target >= 0 && row->win.experiment >= 0;
}

/* Sums of products with the delay, of a block's contrasts to its SHAM. */
static void slopes_block(const struct record *rec, size_t from, size_t to, struct slopes *sums,
			 struct slopes *squares)
{
	double sham = 0, n = 0;

	for (size_t i = from; i < to; i++)
		if (rec->row[i].column == COLUMN_SHAM && isfinite(window_t(rec, &rec->row[i]))) {
			sham += window_t(rec, &rec->row[i]);
			n++;
		}
	for (size_t i = from; i < to && n > 0; i++) {
		const struct record_row *row = &rec->row[i];
		double d = (double)row->win.delay_ns, t = window_t(rec, row);

		if (!has_slope(row) || !isfinite(t))
			continue;
		*slope_of(sums, &row->win) += d * (t - sham / n);
		*slope_of(squares, &row->win) += d * d;
	}
}

static void slopes_finish(struct slopes *slopes, const struct slopes *squares, size_t from)
{
	size_t n = slopes->n_experiments * slopes->n_targets, only = SIZE_MAX;
	bool several = false;

	for (size_t i = from * slopes->n_targets; i < n; i++) {
		if (!(squares->slope[i] > 0))
			continue;
		several |= only != SIZE_MAX && only != i % slopes->n_targets;
		only = i % slopes->n_targets;
	}
	for (size_t i = 0; i < n; i++) {
		double square = squares->slope[i];

		slopes->slope[i] = !several   ? 1 :
				   square > 0 ? fmax(0, slopes->slope[i] / square) :
						0;
	}
}

static void slopes_make(const struct record *rec, int first, struct slopes *slopes)
{
	struct slopes squares;

	*slopes = (struct slopes){ 0 };
	for (size_t i = 0; i < rec->n; i++) {
		const struct sweep_window *win = &rec->row[i].win;

		if (win->experiment >= (int)slopes->n_experiments)
			slopes->n_experiments = (size_t)win->experiment + 1;
		if (win->target >= (int)slopes->n_targets)
			slopes->n_targets = (size_t)win->target + 1;
	}
	squares = *slopes;
	slopes->slope = must_calloc(slopes->n_experiments * slopes->n_targets, sizeof(double));
	squares.slope = must_calloc(slopes->n_experiments * slopes->n_targets, sizeof(double));
	for (size_t i = 0; i < rec->n; i = block_end(rec, i))
		slopes_block(rec, i, block_end(rec, i), slopes, &squares);
	slopes_finish(slopes, &squares, (size_t)first);
	free(squares.slope);
}

/* Sums of products of (T, dose, step from the dose before), block means subtracted. */
struct carry {
	double m[3][3];
	double n, blocks;
};

static double dose_of(const struct record_row *row, const struct slopes *slopes)
{
	double delay = (double)row->win.delay_ns;

	return has_slope(row) ? delay * *slope_of(slopes, &row->win) : delay;
}

static void carry_block(const struct record *rec, const struct slopes *slopes, size_t from,
			size_t to, struct carry *c)
{
	double mean[3] = { 0 }, v[3], n = (double)(to - from);

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = from; i < to; i++) {
			v[0] = window_t(rec, &rec->row[i]);
			v[1] = dose_of(&rec->row[i], slopes);
			v[2] = dose_of(&rec->row[i - 1], slopes) - v[1];
			for (int a = 0; a < 3 && pass == 0; a++)
				mean[a] += v[a] / n;
			for (int a = 0; a < 3 && pass == 1; a++)
				for (int b = 0; b < 3; b++)
					c->m[a][b] += (v[a] - mean[a]) * (v[b] - mean[b]);
		}
	c->n += n;
	c->blocks++;
}

static double carry_t(const struct carry *c)
{
	double det = c->m[1][1] * c->m[2][2] - c->m[1][2] * c->m[1][2], own, step, left, df;

	df = c->n - c->blocks - 2;
	if (!(det > 0) || df < 4)
		return 0;
	own = (c->m[0][1] * c->m[2][2] - c->m[0][2] * c->m[1][2]) / det;
	step = (c->m[0][2] * c->m[1][1] - c->m[0][1] * c->m[1][2]) / det;
	left = c->m[0][0] - own * c->m[0][1] - step * c->m[0][2];
	return left > 0 ? step / sqrt(left / df * c->m[1][1] / det) : 0;
}

double record_carry(const struct record *rec, int first)
{
	struct carry carry = { 0 };
	struct slopes slopes;
	size_t from = 1;

	slopes_make(rec, first, &slopes);
	for (size_t i = 1; i <= rec->n; i++) {
		const struct record_row *row = &rec->row[i - 1];

		if (i < rec->n && same_block(row, &rec->row[i]))
			continue;
		/* A block ends at i; its first window follows another block's. */
		for (from = i - 1; from > 0 && same_block(&rec->row[from - 1], row);)
			from--;
		from++;
		if (row->win.experiment < first || row->win.block < 0 || i < from + 3)
			continue;
		for (size_t k = from - 1; k < i; k++)
			if (!isfinite(window_t(rec, &rec->row[k])))
				from = rec->n;
		if (from < i)
			carry_block(rec, &slopes, from, i, &carry);
	}
	free(slopes.slope);
	return carry_t(&carry);
}
