/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <stdlib.h>
#include "src/base/must.h"

/* With fewer, hits that a window cuts in two would matter. */
enum { GIVEN_HITS = 1000 };

void record_add(struct record *rec, const struct record_row *row)
{
	struct record_row *to;

	if ((rec->n & (rec->n - 1)) == 0) /* grows at the powers of two */
		rec->row = must_realloc(rec->row, (rec->n ? 2 * rec->n : 1) * sizeof(*rec->row));
	to = &rec->row[rec->n++];
	*to = *row;
	to->lane = must_calloc(row->n_lanes, sizeof(*to->lane));
	if (row->n_lanes)
		memcpy(to->lane, row->lane, row->n_lanes * sizeof(*to->lane));
	to->scan = must_calloc(row->n_scans, sizeof(*to->scan));
	if (row->n_scans)
		memcpy(to->scan, row->scan, row->n_scans * sizeof(*to->scan));
	if (row->counter) {
		size_t size = SIDE_COUNT * rec->n_counters * sizeof(*to->counter);

		to->counter = memcpy(must_calloc(1, size), row->counter, size);
	}
}

void record_free(struct record *rec)
{
	for (size_t i = 0; i < rec->n; i++) {
		free(rec->row[i].lane);
		free(rec->row[i].scan);
		free(rec->row[i].counter);
	}
	for (size_t i = 0; i < rec->n_roles; i++)
		free(rec->role[i]);
	free(rec->row);
	free(rec->role);
	free(rec->lane);
	*rec = (struct record){ 0 };
}

static bool of_experiment(const struct record_row *row, int experiment)
{
	return experiment < 0 || row->win.experiment == experiment;
}

/* All windows of an experiment, by lane. */
static struct lane_count *totals(const struct record *rec, int experiment)
{
	struct lane_count *total = must_calloc(rec->n_lanes, sizeof(*total));
	double windows = 0;

	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (!of_experiment(row, experiment) || row->win.arm == ARM_OFF)
			continue;
		windows++;
		for (size_t l = 0; l < rec->n_lanes; l++) {
			if (l >= row->n_lanes) { /* not seen yet */
				total[l].gone++;
				continue;
			}
			total[l].hits += row->lane[l].hits;
			total[l].injected_ns += row->lane[l].injected_ns;
			total[l].overrun_ns += row->lane[l].overrun_ns;
			total[l].gone += row->lane[l].gone;
		}
	}
	for (size_t l = 0; l < rec->n_lanes && windows > 0; l++)
		total[l].gone /= windows;
	return total;
}

static void add_scans(const struct record *rec, int experiment, struct lane_scan *scan)
{
	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		for (size_t r = 0; r < row->n_scans && r < rec->n_roles; r++)
			if (of_experiment(row, experiment) && row->win.arm == ARM_SHAM)
				lane_scan_add(&scan[r], &row->scan[r]);
	}
}

/*
 * What was at work in SHAM, by role: no delay changes it there. An experiment's own looks are those
 * at the threads that call its target; where they are few, all have to do.
 */
static struct lane_scan *scans(const struct record *rec, int experiment)
{
	struct lane_scan *scan = must_calloc(rec->n_roles, sizeof(*scan));
	double most = 0;

	add_scans(rec, experiment, scan);
	for (size_t r = 0; r < rec->n_roles; r++)
		most = fmax(most, scan[r].n);
	if (most >= LANE_SCANS)
		return scan;
	memset(scan, 0, rec->n_roles * sizeof(*scan));
	add_scans(rec, -1, scan);
	return scan;
}

/* Responses in the windows of totals(). */
static double responses(const struct record *rec, int experiment)
{
	double sum = 0;

	for (size_t i = 0; i < rec->n; i++)
		if (of_experiment(&rec->row[i], experiment) && rec->row[i].win.arm != ARM_OFF)
			sum += rec->row[i].win.response_count;
	return sum;
}

double *record_weights(const struct record *rec, int experiment, const struct record_view *view,
		       double *lanes)
{
	struct lane_count *total = totals(rec, experiment);
	struct lane_scan *scan = scans(rec, experiment);
	struct lane_set set = { rec->lane, total, rec->n_lanes, scan, rec->n_roles, 0 };
	double *w = must_calloc(rec->n_lanes, sizeof(*w)), n;

	if (rec->response && !view->throughput)
		set.events = responses(rec, experiment);

	n = lane_weights(&set, view->mode, view->role, w);
	if (lanes)
		*lanes = n;
	free(scan);
	free(total);
	return w;
}

struct sums {
	double time, items, response, responses, injected, hits;
	int windows, length;
};

static double injected(const struct record_row *row, const double *w)
{
	double sum = 0;

	for (size_t l = 0; l < row->n_lanes; l++)
		sum += w[l] * (double)row->lane[l].injected_ns;
	return sum;
}

static double time_of(const struct record_row *row, const struct record_view *view)
{
	if (!view->counter)
		return (double)row->win.time_ns;
	return row->counter ? row->counter[view->counter - 1] : NAN;
}

static void sums_add(struct sums *sums, const struct record_row *row,
		     const struct record_view *view, const double *w)
{
	sums->time += time_of(row, view);
	sums->items += row->win.items;
	sums->response += row->win.response_sum_ns;
	sums->responses += row->win.response_count;
	sums->hits += (double)row->win.hits;
	sums->injected += injected(row, w);
	sums->windows++;
	sums->length = row->length;
}

static struct infer_cell sums_cell(const struct record *rec, const struct sums *s,
				   const struct record_view *view)
{
	bool response = rec->response && !view->throughput;
	struct infer_cell cell = { NAN, NAN, NAN };

	if (!(s->items > 0))
		return cell;
	cell.t = s->time / s->items;
	cell.x = s->injected / s->items;
	if (response) { /* both of one event: a request may be many items */
		cell.t = s->responses > 0 ? (view->counter ? s->time : s->response) / s->responses :
					    NAN;
		cell.x = s->responses > 0 ? s->injected / s->responses : NAN;
	}
	cell.h = s->hits / s->items;
	return cell;
}

size_t record_blocks(const struct record *rec, int experiment)
{
	size_t blocks = 0;

	for (size_t i = 0; i < rec->n; i++) {
		const struct sweep_window *win = &rec->row[i].win;

		if (win->experiment == experiment && win->block >= 0 &&
		    (size_t)win->block >= blocks)
			blocks = (size_t)win->block + 1;
	}
	return blocks;
}

/* Sums by block and column; columns beyond n_columns are left out. */
static struct sums *tabulate(const struct record *rec, int experiment, size_t blocks,
			     size_t n_columns, const struct record_view *view, const double *w)
{
	struct sums *sums = must_calloc(blocks * n_columns, sizeof(*sums));

	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (row->win.experiment != experiment || row->win.block < 0 || row->column < 0 ||
		    (size_t)row->column >= n_columns)
			continue;
		sums_add(&sums[(size_t)row->win.block * n_columns + (size_t)row->column], row, view,
			 w);
	}
	return sums;
}

static bool whole(const struct sums *sums)
{
	return sums->windows > 0 && sums->windows == sums->length;
}

void record_data(const struct record *rec, int experiment, size_t n_doses,
		 const struct record_view *view, struct infer_data *data, double *lanes)
{
	size_t blocks = record_blocks(rec, experiment), columns = COLUMN_DOSE + n_doses;
	double *w = record_weights(rec, experiment, view, lanes);
	struct sums *sums = tabulate(rec, experiment, blocks, columns, view, w);
	struct infer_cell *cell = must_calloc(blocks * (n_doses + 1), sizeof(*cell));

	*data = (struct infer_data){ .n_arms = n_doses + 1, .cell = cell };
	for (size_t b = 0; b < blocks; b++) {
		const struct sums *in = &sums[b * columns];
		bool ok = whole(&in[COLUMN_SHAM]);

		for (size_t a = 0; a < n_doses; a++)
			ok = ok && whole(&in[COLUMN_DOSE + a]);
		if (!ok)
			continue;
		*cell++ = sums_cell(rec, &in[COLUMN_SHAM], view);
		for (size_t a = 0; a < n_doses; a++)
			*cell++ = sums_cell(rec, &in[COLUMN_DOSE + a], view);
		data->n_blocks++;
	}
	free(sums);
	free(w);
}

void record_data_free(struct infer_data *data)
{
	free((void *)data->cell);
	data->cell = NULL;
}

size_t record_contrast(const struct record *rec, int experiment, int a, int b, bool relative,
		       double *v)
{
	size_t blocks = record_blocks(rec, experiment), n = 0;
	size_t columns = (size_t)(a > b ? a : b) + 1;
	double *w = must_calloc(rec->n_lanes, sizeof(*w));
	const struct record_view view = { .role = -1 };
	struct sums *sums = tabulate(rec, experiment, blocks, columns, &view, w);

	for (size_t i = 0; i < blocks; i++) {
		const struct sums *sa = &sums[i * columns + (size_t)a];
		const struct sums *sb = &sums[i * columns + (size_t)b];
		double ta = sums_cell(rec, sa, &view).t, tb = sums_cell(rec, sb, &view).t;

		if (whole(sa) && whole(sb) && isfinite(ta) && isfinite(tb))
			v[n++] = relative ? (tb - ta) / ta : tb - ta;
	}
	free(sums);
	free(w);
	return n;
}

static double window_t(const struct record *rec, const struct record_row *row)
{
	if (rec->response)
		return row->win.response_count > 0 ?
			       row->win.response_sum_ns / row->win.response_count :
			       NAN;
	return row->win.items > 0 ? (double)row->win.time_ns / row->win.items : NAN;
}

/* Sums of products of (T, dose, step from the dose before), block means subtracted. */
struct carry {
	double m[3][3];
	double n, blocks;
};

static void carry_block(const struct record *rec, size_t from, size_t to, struct carry *c)
{
	double mean[3] = { 0 }, v[3], n = (double)(to - from);

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = from; i < to; i++) {
			v[0] = window_t(rec, &rec->row[i]);
			v[1] = (double)rec->row[i].win.delay_ns;
			v[2] = (double)rec->row[i - 1].win.delay_ns - v[1];
			for (int a = 0; a < 3 && pass == 0; a++)
				mean[a] += v[a] / n;
			for (int a = 0; a < 3 && pass == 1; a++)
				for (int b = 0; b < 3; b++)
					c->m[a][b] += (v[a] - mean[a]) * (v[b] - mean[b]);
		}
	c->n += n;
	c->blocks++;
}

static bool same_block(const struct record_row *a, const struct record_row *b)
{
	return a->win.experiment == b->win.experiment && a->win.block == b->win.block;
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
	size_t from = 1;

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
			carry_block(rec, from, i, &carry);
	}
	return carry_t(&carry);
}

struct infer_cell record_level(const struct record *rec, int experiment, int column,
			       const struct record_view *view)
{
	double *w = record_weights(rec, experiment, view, NULL);
	struct sums sums = { 0 };

	for (size_t i = 0; i < rec->n; i++)
		if (of_experiment(&rec->row[i], experiment) && rec->row[i].column == column)
			sums_add(&sums, &rec->row[i], view, w);
	free(w);
	return sums_cell(rec, &sums, view);
}

double record_given(const struct record *rec, int experiment, uint64_t every)
{
	double hits = 0, asked = 0, given = 0;

	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (row->win.experiment != experiment || row->column < COLUMN_DOSE ||
		    !row->win.delay_ns)
			continue;
		for (size_t l = 0; l < row->n_lanes; l++) {
			const struct lane_count *c = &row->lane[l];

			hits += (double)c->hits;
			asked += (double)c->hits * (double)row->win.delay_ns;
			given += (double)c->injected_ns - (double)c->overrun_ns;
		}
	}
	every = every ? every : 1;
	return hits >= GIVEN_HITS * (double)every ? given * (double)every / asked : NAN;
}

void record_finish(struct record *rec, enum lane_mode mode)
{
	struct record_view view = { .mode = mode, .role = -1 };
	double *w = NULL;
	int of = -2;

	for (size_t i = 0; i < rec->n; i++) {
		struct record_row *row = &rec->row[i];
		struct sums sums = { 0 };
		struct infer_cell cell;

		if (!w || row->win.experiment != of) {
			free(w);
			of = row->win.experiment;
			w = record_weights(rec, of, &view, NULL);
		}
		sums_add(&sums, row, &view, w);
		cell = sums_cell(rec, &sums, &view);
		row->win.x_total_ns = sums.injected;
		row->win.t_ns = cell.t;
		row->win.x_ns = cell.x;
		row->win.hits_per_item = row->win.arm == ARM_OFF ? NAN : cell.h;
	}
	free(w);
}
