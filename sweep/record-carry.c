/* SPDX-License-Identifier: MIT */
/* record_carries(): is what an arm left in the pipeline felt in the arms after it? */
#include <math.h>
#include <stdlib.h>
#include "record.h"
#include "stat.h"
#include "src/base/must.h"

#define TAUS	  32  /* time constants that are tried of each shape */
#define FINE	  17  /* ... and around the best */
#define CARRY_T	  3.5 /* with many blocks: what was felt was late */
#define CARRY_FEW 4.0
#define LEVEL	  0.975
#define SOON_T	  1.5

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
		if (rec->row[i].column == COLUMN_SHAM &&
		    isfinite(record_window_t(rec, &rec->row[i]))) {
			sham += record_window_t(rec, &rec->row[i]);
			n++;
		}
	for (size_t i = from; i < to && n > 0; i++) {
		const struct record_row *row = &rec->row[i];
		double d = (double)row->win.delay_ns, t = record_window_t(rec, row);

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

/* The windows from `from` to `to` are a block whose T is all known. */
struct span {
	size_t from, to;
};

/*
 * Of every window: its delay, as slopes weigh it, and how far the program had come to feel it. Only
 * `late` differs from one time constant to the next.
 */
struct course {
	size_t n;
	double *all;		  /* the memory of these: */
	double *end, *time, *gap; /* ns; gap: from the end of the window before to its begin */
	double *t;		  /* straightened: on a line over the doses */
	double *dose, *late;
	double *t_off, *dose_off; /* less the block's mean; of the windows in blocks alone */
	double *sum;		  /* of delay and time, up to the window's end */
	double tt, td, dd;	  /* sums of products of t_off and dose_off */
	double in_blocks;	  /* windows */
	double q;		  /* Student's, for as many blocks as there are */
};

static double dose_of(const struct record_row *row, const struct slopes *slopes)
{
	double delay = (double)row->win.delay_ns;

	return has_slope(row) ? delay * *slope_of(slopes, &row->win) : delay;
}

/*
 * A change is felt as 1 - exp(-t / tau). The arm is in force from the end of the window before.
 * late: what is felt in the window less what would be felt in the end.
 */
static void course_settle(struct course *c, double tau)
{
	double felt = 0;

	for (size_t i = 0; i < c->n; i++) {
		double w = c->time[i], gone = expm1(-w / tau), away = felt - c->dose[i];

		if (c->gap[i] > 0)
			away *= exp(-c->gap[i] / tau);
		c->late[i] = away * tau / w * -gone;
		felt = c->dose[i] + away * (1 + gone);
	}
}

/* Up to a time t; *at is the window that holds it, or an earlier one: t grows from call to call. */
static double sum_until(const struct course *c, size_t *at, double t)
{
	while (*at + 1 < c->n && c->end[*at] <= t)
		++*at;
	return c->sum[*at] - c->dose[*at] * (c->end[*at] - t);
}

/* A change is not felt before a time, and then in full: it passes what is in the pipeline. */
static void course_pass(struct course *c, double depth)
{
	size_t to = 0, from = 0;

	for (size_t i = 0; i < c->n; i++) {
		double end = c->end[i] - depth, w = c->time[i];
		double felt = sum_until(c, &to, end) - sum_until(c, &from, end - w);

		c->late[i] = felt / w - c->dose[i];
	}
}

static void course_open(const struct record *rec, const struct slopes *slopes, struct course *c)
{
	double **array[] = { &c->end,  &c->time,  &c->gap,	&c->t,	&c->dose,
			     &c->late, &c->t_off, &c->dose_off, &c->sum };
	size_t arrays = sizeof(array) / sizeof(*array);
	double sum = 0, before = 0;

	*c = (struct course){ .n = rec->n };
	c->all = must_calloc(arrays * rec->n, sizeof(double));
	for (size_t i = 0; i < arrays; i++)
		*array[i] = c->all + i * rec->n;
	for (size_t i = 0; i < rec->n; i++) {
		c->end[i] = (double)rec->row[i].win.end_ns;
		c->time[i] = (double)rec->row[i].win.time_ns;
		c->gap[i] = fmax(0, c->end[i] - c->time[i] - before);
		c->t[i] = record_window_t(rec, &rec->row[i]);
		c->dose[i] = dose_of(&rec->row[i], slopes);
		sum += c->dose[i] * (c->end[i] - before);
		before = c->end[i];
		c->sum[i] = sum;
	}
}

static size_t spans_find(const struct record *rec, int first, struct span *span)
{
	size_t n = 0, to;

	for (size_t i = 0; i < rec->n; i = to) {
		bool known = true;

		to = block_end(rec, i);
		for (size_t k = i; k < to; k++)
			known &= isfinite(record_window_t(rec, &rec->row[k]));
		if (known && rec->row[i].win.experiment >= first && rec->row[i].win.block >= 0 &&
		    to >= i + 3)
			span[n++] = (struct span){ i, to };
	}
	return n;
}

/* v less its mean in each block; out may be v. */
static void centre(const double *v, const struct span *span, size_t spans, double *out)
{
	for (size_t b = 0; b < spans; b++) {
		double sum = 0, mean;

		for (size_t i = span[b].from; i < span[b].to; i++)
			sum += v[i];
		mean = sum / (double)(span[b].to - span[b].from);
		for (size_t i = span[b].from; i < span[b].to; i++)
			out[i] = v[i] - mean;
	}
}

/* What all time constants have in common. */
static void course_sums(struct course *c, const struct span *span, size_t spans)
{
	centre(c->t, span, spans, c->t_off);
	centre(c->dose, span, spans, c->dose_off);
	c->tt = c->td = c->dd = c->in_blocks = 0;
	for (size_t b = 0; b < spans; b++) {
		for (size_t i = span[b].from; i < span[b].to; i++) {
			c->tt += c->t_off[i] * c->t_off[i];
			c->td += c->t_off[i] * c->dose_off[i];
			c->dd += c->dose_off[i] * c->dose_off[i];
		}
		c->in_blocks += (double)(span[b].to - span[b].from);
	}
}

/* A line of T on dose and late, and the scores of its residuals. */
struct fit {
	double tl, dl, ll; /* sums of products: t, dose, late */
	double own, late, left, own_score, late_score;
};

static void fit_sums(const struct course *c, const struct span *span, size_t spans, struct fit *f)
{
	for (size_t b = 0; b < spans; b++)
		for (size_t i = span[b].from; i < span[b].to; i++) {
			f->tl += c->t_off[i] * c->late[i];
			f->dl += c->dose_off[i] * c->late[i];
			f->ll += c->late[i] * c->late[i];
		}
}

static bool same_arm(const struct record_row *a, const struct record_row *b)
{
	return a->column == b->column && a->win.delay_ns == b->win.delay_ns;
}

/* The first window of the arm of window i of the block b, among blocks of the same arms. */
static size_t arm_first(const struct record *rec, const struct span *span, size_t b, size_t i)
{
	for (size_t s = 0; s <= b; s++) {
		const struct record_row *row = &rec->row[span[s].from];

		if (span[s].to - span[s].from != span[b].to - span[b].from ||
		    row->win.experiment != rec->row[i].win.experiment)
			continue;
		for (size_t k = span[s].from; k < span[s].to; k++)
			if (same_arm(&rec->row[k], &rec->row[i]))
				return k;
	}
	return i;
}

/*
 * A slack bends T over the doses, which is no sign of lateness: what an arm is off the line, over
 * all blocks, is taken from each of its windows.
 */
static void straighten(const struct record *rec, struct course *c, const struct span *span,
		       size_t spans)
{
	struct bend {
		double off, n;
	} *bend = must_calloc(rec->n, sizeof(*bend)); /* of an arm at its first window */
	size_t *arm = must_calloc(rec->n, sizeof(*arm));

	course_sums(c, span, spans);
	for (size_t b = 0; b < spans; b++)
		for (size_t i = span[b].from; i < span[b].to; i++) {
			arm[i] = arm_first(rec, span, b, i);
			bend[arm[i]].off += c->t_off[i] - c->td / c->dd * c->dose_off[i];
			bend[arm[i]].n++;
		}
	for (size_t b = 0; b < spans && c->dd > 0; b++)
		for (size_t i = span[b].from; i < span[b].to; i++)
			c->t[i] -= bend[arm[i]].off / bend[arm[i]].n;
	free(bend);
	free(arm);
	course_sums(c, span, spans);
}

static bool fit_line(const struct course *c, struct fit *f)
{
	double det = c->dd * f->ll - f->dl * f->dl;

	if (!(det > 1e-9 * c->dd * f->ll))
		return false;
	f->own = (c->td * f->ll - f->tl * f->dl) / det;
	f->late = (f->tl * c->dd - c->td * f->dl) / det;
	f->left = c->tt - f->own * c->td - f->late * f->tl;
	return f->left > 0;
}

/* By block: noise that lasts for some windows makes their residuals alike. */
static void fit_scores(const struct course *c, const struct span *span, size_t spans, struct fit *f)
{
	double by_dose = f->dl / c->dd, by_late = f->dl / f->ll;

	for (size_t b = 0; b < spans; b++) {
		double own = 0, late = 0;

		for (size_t i = span[b].from; i < span[b].to; i++) {
			double d = c->dose_off[i], l = c->late[i];
			double e = c->t_off[i] - f->own * d - f->late * l;

			own += e * (d - by_late * l);
			late += e * (l - by_dose * d);
		}
		f->own_score += own * own;
		f->late_score += late * late;
	}
}

/* The larger of two: residuals independent of each other, and independent from block to block. */
static double error_of(double score, double left, double df, double inner, size_t spans)
{
	double n = (double)spans, blocks = sqrt(score * n / (n - 1)) / inner;

	return fmax(sqrt(left / df / inner), blocks);
}

/* The result with one time constant. */
struct
try {
	struct carry carry;
	double explained, error; /* by late; its variance, in the same unit */
	bool known;
};

/* One time constant, whose `late` is set; false: the data do not show it. */
static bool fit_tau(struct course *c, const struct span *span, size_t spans, struct try *try)
{
	struct carry *out = &try->carry;
	struct fit f = { 0 };
	double df, own, late, se;

	centre(c->late, span, spans, c->late);
	fit_sums(c, span, spans, &f);
	df = c->in_blocks - (double)spans - 2;
	if (spans < 2 || df < 4 || !fit_line(c, &f))
		return false;
	fit_scores(c, span, spans, &f);
	own = c->dd - f.dl * f.dl / f.ll;
	late = f.ll - f.dl * f.dl / c->dd;
	se = error_of(f.late_score, f.left, df, late, spans);
	try->explained = f.late * fabs(f.late) * late;
	try->error = se * se * late;
	out->total = f.own;
	out->alone = c->td / c->dd;
	se = error_of(f.own_score, f.left, df, own, spans);
	out->df = (double)spans - 1;
	out->lo = f.own - c->q * se;
	out->hi = f.own + c->q * se;
	out->t = f.late / sqrt(try->error / late);
	return true;
}

struct range {
	double least, most;
	double soon; /* of that, up to two windows with their guards */
	size_t n;
	bool pass; /* a pipeline; else an approach */
};

/* From a part of the shortest window to twice the longest block. */
static struct range range_of(const struct record *rec, const struct span *span, size_t spans)
{
	struct range range = { INFINITY, 0, 0, TAUS, false };

	for (size_t b = 0; b < spans; b++) {
		const struct sweep_window *win = &rec->row[span[b].from].win;
		double length = (double)(rec->row[span[b].to - 1].win.end_ns - win->end_ns);

		range.least = fmin(range.least, (double)win->time_ns / 4);
		range.most = fmax(range.most, 2 * length);
		range.soon = fmax(range.soon, 2 * length / (double)(span[b].to - span[b].from - 1));
	}
	return range;
}

/* The time constant that explains the most; the interval is one over all that explain as much. */
static struct carry best_of(const struct try *try, size_t n)
{
	struct carry out = { 0 };
	const struct try *best = NULL;
	double q, less;

	for (size_t i = 0; i < n; i++)
		if (try[i].known && (!best || try[i].explained > best->explained))
			best = &try[i];
	if (!best)
		return out;
	out = best->carry;
	q = stat_t_quantile(LEVEL, out.df);
	less = q * q * best->error; /* as good as the best but for chance */
	for (size_t i = 0; i < n; i++) {
		if (!try[i].known || try[i].explained < best->explained - less)
			continue;
		out.lo = fmin(out.lo, try[i].carry.lo);
		out.hi = fmax(out.hi, try[i].carry.hi);
	}
	return out;
}

/* What comes so late that it is felt in the next window, if only perhaps. */
static double soon_of(const struct try *try, size_t n, double most)
{
	double explained = 0, soon = 0;

	for (size_t i = 0; i < n; i++) {
		const struct carry *carry = &try[i].carry;

		if (!try[i].known || carry->tau_ns > most || !(carry->t > SOON_T) ||
		    try[i].explained <= explained)
			continue;
		explained = try[i].explained;
		soon = carry->total - carry->alone;
	}
	return soon;
}

/* In T, for a ns of the target's own delay. */
static void of_target(const struct slopes *slopes, int first, int target, struct carry *carry)
{
	double slope = NAN;

	if (target >= 0 && (size_t)target < slopes->n_targets && first >= 0)
		slope = slopes->slope[(size_t)first * slopes->n_targets + (size_t)target];
	carry->total *= slope;
	carry->alone *= slope;
	carry->soon *= slope;
	carry->lo *= slope;
	carry->hi *= slope;
}

/* All time constants between two, of one shape; the first tries are known to be open. */
static void try_range(struct course *c, const struct span *span, size_t spans,
		      const struct range *range, struct try *try)
{
	for (size_t i = 0; i < range->n; i++) {
		double tau = range->least *
			     pow(range->most / range->least, (double)i / (double)(range->n - 1));

		if (range->pass)
			course_pass(c, tau);
		else
			course_settle(c, tau);
		try[i].known = fit_tau(c, span, spans, &try[i]);
		try[i].carry.tau_ns = tau;
		try[i].carry.pass = range->pass;
	}
}

/* Coarsely for both shapes; then finely around the best. */
static struct carry search(const struct record *rec, struct course *c, const struct span *span,
			   size_t spans)
{
	struct try try[2 * TAUS + FINE] = { 0 };
	struct range range = range_of(rec, span, spans), fine;
	struct carry best = { 0 };
	double step, soon;

	if (!(range.most > range.least))
		return best;
	step = pow(range.most / range.least, 1.0 / (TAUS - 1));
	try_range(c, span, spans, &range, try);
	range.pass = true;
	try_range(c, span, spans, &range, try + TAUS);
	best = best_of(try, 2 * TAUS);
	soon = soon_of(try, 2 * TAUS, range.soon);
	if (!(best.tau_ns > 0))
		return best;
	fine = (struct range){ best.tau_ns / step, best.tau_ns * step, 0, FINE, best.pass };
	try_range(c, span, spans, &fine, try + 2 * TAUS);
	best = best_of(try, 2 * TAUS + FINE);
	best.soon = soon;
	return best;
}

void record_carries(const struct record *rec, int first, const int *target, size_t n,
		    struct carry *out)
{
	struct span *span = must_calloc(rec->n, sizeof(*span));
	size_t spans = spans_find(rec, first, span);
	struct slopes slopes;
	struct course c;
	struct carry best;

	slopes_make(rec, first, &slopes);
	course_open(rec, &slopes, &c);
	c.q = stat_t_quantile(LEVEL, (double)spans - 1);
	straighten(rec, &c, span, spans);
	best = search(rec, &c, span, spans);
	for (size_t i = 0; i < n; i++) {
		out[i] = best;
		of_target(&slopes, first, target[i], &out[i]);
	}
	free(c.all);
	free(slopes.slope);
	free(span);
}

struct carry record_carry(const struct record *rec, int first, int target)
{
	struct carry out;

	record_carries(rec, first, &target, 1, &out);
	return out;
}

bool carry_seen(const struct carry *carry)
{
	return carry->t > CARRY_T + CARRY_FEW / carry->df;
}
