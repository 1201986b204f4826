/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <stdlib.h>
#include "src/base/must.h"

/* With fewer, hits that a window cuts in two would matter. */
enum { GIVEN_HITS = 1000 };

/* A copy of n elements of a size; never NULL. */
static void *copy_of(const void *from, size_t n, size_t size)
{
	void *to = must_calloc(n, size);

	if (n)
		memcpy(to, from, n * size);
	return to;
}

static double *copy_counters(const struct record *rec, const double *counter)
{
	return counter ? copy_of(counter, SIDE_COUNT * rec->n_counters, sizeof(*counter)) : NULL;
}

void record_add(struct record *rec, const struct record_row *row)
{
	struct record_row *to;

	if ((rec->n & (rec->n - 1)) == 0) /* grows at the powers of two */
		rec->row = must_realloc(rec->row, (rec->n ? 2 * rec->n : 1) * sizeof(*rec->row));
	to = &rec->row[rec->n++];
	*to = *row;
	to->lane = copy_of(row->lane, row->n_lanes, sizeof(*to->lane));
	to->scan = copy_of(row->scan, row->n_scans, sizeof(*to->scan));
	to->counter = copy_counters(rec, row->counter);
	to->bucket = copy_of(row->bucket, row->n_buckets, sizeof(*to->bucket));
	to->part = copy_of(row->part, row->n_parts, sizeof(*to->part));
	for (size_t i = 0; i < row->n_parts; i++) {
		struct record_part *part = &to->part[i];

		part->lane = copy_of(part->lane, part->n_lanes, sizeof(*part->lane));
		part->scan = copy_of(part->scan, part->n_scans, sizeof(*part->scan));
		part->counter = copy_counters(rec, part->counter);
	}
}

static void row_free(struct record_row *row)
{
	for (size_t i = 0; i < row->n_parts; i++) {
		free(row->part[i].lane);
		free(row->part[i].scan);
		free(row->part[i].counter);
	}
	free(row->part);
	free(row->lane);
	free(row->scan);
	free(row->counter);
	free(row->bucket);
}

void record_free(struct record *rec)
{
	for (size_t i = 0; i < rec->n; i++)
		row_free(&rec->row[i]);
	for (size_t i = 0; i < rec->n_roles; i++)
		free(rec->role[i]);
	free(rec->row);
	free(rec->role);
	free(rec->lane);
	*rec = (struct record){ 0 };
}

/* What a row has of a target; false: nothing, it is of another experiment or target. */
static bool part_of(const struct record_row *row, const struct record_of *of,
		    struct record_part *part)
{
	if (of->experiment >= 0 && row->win.experiment != of->experiment)
		return false;
	for (size_t i = 0; i < row->n_parts && of->target >= 0; i++) {
		if (row->part[i].target != of->target)
			continue;
		*part = row->part[i];
		return true;
	}
	*part = (struct record_part){ row->win.target, row->win.hits, row->lane,   row->n_lanes,
				      row->scan,       row->n_scans,  row->counter };
	return of->target < 0 || row->win.target == of->target;
}

bool record_has(const struct record *rec, size_t row, const struct record_of *of)
{
	struct record_part part;

	return part_of(&rec->row[row], of, &part);
}

/* All windows of a target, by lane. */
static struct lane_count *totals(const struct record *rec, const struct record_of *of)
{
	struct lane_count *total = must_calloc(rec->n_lanes, sizeof(*total));
	struct record_part part;
	double windows = 0;

	for (size_t i = 0; i < rec->n; i++) {
		if (rec->row[i].win.arm == ARM_OFF || !part_of(&rec->row[i], of, &part))
			continue;
		windows++;
		for (size_t l = 0; l < rec->n_lanes; l++) {
			if (l >= part.n_lanes) { /* not seen yet */
				total[l].gone++;
				continue;
			}
			total[l].hits += part.lane[l].hits;
			total[l].injected_ns += part.lane[l].injected_ns;
			total[l].overrun_ns += part.lane[l].overrun_ns;
			total[l].gone += part.lane[l].gone;
		}
	}
	for (size_t l = 0; l < rec->n_lanes && windows > 0; l++)
		total[l].gone /= windows;
	return total;
}

static void add_scans(const struct record *rec, const struct record_of *of, struct lane_scan *scan)
{
	struct record_part part;

	for (size_t i = 0; i < rec->n; i++) {
		if (rec->row[i].win.arm != ARM_SHAM || !part_of(&rec->row[i], of, &part))
			continue;
		for (size_t r = 0; r < part.n_scans && r < rec->n_roles; r++)
			lane_scan_add(&scan[r], &part.scan[r]);
	}
}

/*
 * What was at work in SHAM, by role: no delay changes it there. A target's own looks are those at
 * the threads that call it; where they are few, all have to do.
 */
static struct lane_scan *scans(const struct record *rec, const struct record_of *of)
{
	const struct record_of all = { .experiment = -1, .target = -1 };
	struct lane_scan *scan = must_calloc(rec->n_roles, sizeof(*scan));
	double most = 0;

	add_scans(rec, of, scan);
	for (size_t r = 0; r < rec->n_roles; r++)
		most = fmax(most, scan[r].n);
	if (most >= LANE_SCANS)
		return scan;
	memset(scan, 0, rec->n_roles * sizeof(*scan));
	add_scans(rec, &all, scan);
	return scan;
}

/* Responses in the windows of totals(). */
static double responses(const struct record *rec, const struct record_of *of)
{
	struct record_part part;
	double sum = 0;

	for (size_t i = 0; i < rec->n; i++)
		if (rec->row[i].win.arm != ARM_OFF && part_of(&rec->row[i], of, &part))
			sum += rec->row[i].win.response_count;
	return sum;
}

double *record_weights(const struct record *rec, const struct record_of *of,
		       const struct record_view *view, double *lanes)
{
	struct lane_count *total = totals(rec, of);
	struct lane_scan *scan = scans(rec, of);
	struct lane_set set = { rec->lane, total, rec->n_lanes, scan, rec->n_roles, 0 };
	double *w = must_calloc(rec->n_lanes, sizeof(*w)), n;

	if (rec->response && !view->throughput)
		set.events = responses(rec, of);

	n = lane_weights(&set, view->mode, view->role, w);
	if (lanes)
		*lanes = n;
	free(scan);
	free(total);
	return w;
}

double record_share(const struct record *rec, const struct record_of *of,
		    const struct record_view *view)
{
	double felt = 0, hits = 0, *w = record_weights(rec, of, view, NULL);
	struct lane_count *total = totals(rec, of);

	for (size_t l = 0; l < rec->n_lanes; l++) {
		felt += w[l] * (double)total[l].hits;
		hits += (double)total[l].hits;
	}
	free(total);
	free(w);
	return hits > 0 ? felt / hits : NAN;
}

struct sums {
	double time, items, response, responses, injected, hits, length_ns;
	double amount[INFER_COVARIATES];
	int windows, length;
};

static double injected(const struct record_part *part, const double *w)
{
	double sum = 0;

	for (size_t l = 0; l < part->n_lanes; l++)
		sum += w[l] * (double)part->lane[l].injected_ns;
	return sum;
}

static double time_of(const struct record_row *row, const struct record_part *part,
		      const struct record_view *view)
{
	if (!view->counter)
		return (double)row->win.time_ns;
	return part->counter ? part->counter[view->counter - 1] : NAN;
}

static void sums_add(struct sums *sums, const struct record_row *row,
		     const struct record_part *part, const struct record_view *view,
		     const double *w)
{
	sums->time += time_of(row, part, view);
	sums->items += row->win.items;
	sums->response += row->win.response_sum_ns;
	sums->responses += row->win.response_count;
	sums->hits += (double)part->hits;
	sums->injected += injected(part, w);
	sums->length_ns += (double)row->win.time_ns;
	for (size_t k = 0; k < INFER_COVARIATES; k++)
		sums->amount[k] += row->win.amount[k];
	sums->windows++;
	sums->length = row->length;
}

/* Of what T is of: an item or a response; or of a second. */
static double covariate(const struct record *rec, const struct sums *s, bool response, size_t k)
{
	if (rec->rate[k])
		return s->amount[k] / s->length_ns * 1e9;
	return s->amount[k] / (response ? s->responses : s->items);
}

static void adjust_cell(const struct record *rec, const struct sums *s,
			const struct record_view *view, struct infer_cell *cell)
{
	const struct record_adjust *adjust = &rec->adjust;

	for (size_t i = 0; i < adjust->n; i++) {
		cell->c[i] = covariate(rec, s, rec->response, adjust->which[i]);
		if (!view->raw)
			cell->t -= adjust->slope[i] * (cell->c[i] - adjust->mean[i]);
	}
}

static struct infer_cell sums_cell(const struct record *rec, const struct sums *s,
				   const struct record_view *view)
{
	bool response = rec->response && !view->throughput;
	struct infer_cell cell = { .t = NAN, .x = NAN, .h = NAN };

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
	if (view->covariate)
		cell.t = covariate(rec, s, response, view->covariate - 1);
	if (!view->throughput && !view->counter)
		adjust_cell(rec, s, view, &cell);
	return cell;
}

double record_window_t(const struct record *rec, const struct record_row *row)
{
	const struct record_part none = { .target = -1 };
	const struct record_view view = { .role = -1 };
	struct sums sums = { 0 };

	sums_add(&sums, row, &none, &view, &(double){ 0 });
	return sums_cell(rec, &sums, &view).t;
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
static struct sums *tabulate(const struct record *rec, const struct record_of *of, size_t blocks,
			     size_t n_columns, const struct record_view *view, const double *w)
{
	struct sums *sums = must_calloc(blocks * n_columns, sizeof(*sums));
	struct record_part part;

	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (row->win.block < 0 || row->column < 0 || (size_t)row->column >= n_columns ||
		    !part_of(row, of, &part))
			continue;
		sums_add(&sums[(size_t)row->win.block * n_columns + (size_t)row->column], row,
			 &part, view, w);
	}
	return sums;
}

static bool whole(const struct sums *sums)
{
	return sums->windows > 0 && sums->windows == sums->length;
}

/* Those of a block, to out. */
static size_t block_cells(const struct record *rec, const struct sums *in, size_t columns,
			  struct record_cell *out)
{
	const struct record_view view = { .role = -1, .raw = true };
	size_t n = 0;

	for (size_t c = COLUMN_SHAM; c < columns; c++) {
		struct record_cell *cell = &out[n];

		if (!whole(&in[c]))
			continue;
		cell->column = (int)c;
		cell->t = sums_cell(rec, &in[c], &view).t;
		cell->x = sums_cell(rec, &in[c], &view).x;
		for (size_t k = 0; k < rec->n_covariates; k++)
			cell->c[k] = covariate(rec, &in[c], rec->response, k);
		n += isfinite(cell->t);
	}
	return n > 1 && out[0].column == COLUMN_SHAM && !whole(&in[COLUMN_SHAM2]) ? n : 0;
}

size_t record_cells(const struct record *rec, int experiment, struct record_cell **out)
{
	size_t blocks = record_blocks(rec, experiment), columns = COLUMN_DOSE, n = 0;
	const struct record_of of = { .experiment = experiment, .target = -1 };
	const struct record_view view = { .role = -1 };
	double *w = must_calloc(rec->n_lanes, sizeof(*w));
	struct sums *sums;

	for (size_t i = 0; i < rec->n_lanes; i++)
		w[i] = 1;
	for (size_t i = 0; i < rec->n; i++)
		if (rec->row[i].win.experiment == experiment && rec->row[i].column >= (int)columns)
			columns = (size_t)rec->row[i].column + 1;
	sums = tabulate(rec, &of, blocks, columns, &view, w);
	*out = must_calloc(blocks * columns, sizeof(**out));
	for (size_t b = 0; b < blocks; b++) {
		size_t more = block_cells(rec, &sums[b * columns], columns, *out + n);

		for (; more; more--)
			(*out)[n++].block = (int)b;
	}
	free(sums);
	free(w);
	return n;
}

void record_data(const struct record *rec, const struct record_of *of,
		 const struct record_view *view, struct infer_data *data, double *lanes)
{
	size_t blocks = record_blocks(rec, of->experiment), n_doses = of->n_doses;
	size_t dose = COLUMN_DOSE + of->first, columns = dose + n_doses;
	double *w = record_weights(rec, of, view, lanes);
	struct sums *sums = tabulate(rec, of, blocks, columns, view, w);
	struct infer_cell *cell = must_calloc(blocks * (n_doses + 1), sizeof(*cell));
	int *number = must_calloc(blocks, sizeof(*number));

	*data = (struct infer_data){ .n_arms = n_doses + 1, .cell = cell, .number = number };
	if (rec->adjust.n && !view->raw && !view->throughput && !view->counter)
		data->adjust = &rec->adjust.cost;
	for (size_t b = 0; b < blocks; b++) {
		const struct sums *in = &sums[b * columns];
		bool ok = whole(&in[COLUMN_SHAM]);

		for (size_t a = 0; a < n_doses; a++)
			ok = ok && whole(&in[dose + a]);
		if (!ok)
			continue;
		*cell++ = sums_cell(rec, &in[COLUMN_SHAM], view);
		for (size_t a = 0; a < n_doses; a++)
			*cell++ = sums_cell(rec, &in[dose + a], view);
		number[data->n_blocks++] = (int)b;
	}
	free(sums);
	free(w);
}

void record_data_free(struct infer_data *data)
{
	free((void *)data->cell);
	free((void *)data->number);
	data->cell = NULL;
	data->number = NULL;
}

size_t record_contrast(const struct record *rec, int experiment, int a, int b,
		       enum record_unit unit, double *v)
{
	size_t blocks = record_blocks(rec, experiment), n = 0;
	size_t columns = (size_t)(a > b ? a : b) + 1;
	double *w = must_calloc(rec->n_lanes, sizeof(*w));
	const struct record_of of = { .experiment = experiment, .target = -1 };
	const struct record_view view = { .role = -1, .throughput = unit == RECORD_THROUGHPUT };
	struct sums *sums = tabulate(rec, &of, blocks, columns, &view, w);

	for (size_t i = 0; i < blocks; i++) {
		const struct sums *sa = &sums[i * columns + (size_t)a];
		const struct sums *sb = &sums[i * columns + (size_t)b];
		double ta = sums_cell(rec, sa, &view).t, tb = sums_cell(rec, sb, &view).t;

		if (whole(sa) && whole(sb) && isfinite(ta) && isfinite(tb))
			v[n++] = unit == RECORD_SHARE ? (tb - ta) / ta : tb - ta;
	}
	free(sums);
	free(w);
	return n;
}

struct infer_cell record_level(const struct record *rec, const struct record_of *of, int column,
			       const struct record_view *view)
{
	double *w = record_weights(rec, of, view, NULL);
	struct record_part part;
	struct sums sums = { 0 };

	for (size_t i = 0; i < rec->n; i++)
		if (rec->row[i].column == column && part_of(&rec->row[i], of, &part))
			sums_add(&sums, &rec->row[i], &part, view, w);
	free(w);
	return sums_cell(rec, &sums, view);
}

double record_given(const struct record *rec, const struct record_of *of, uint64_t every)
{
	struct record_part part;
	double hits = 0, asked = 0, given = 0;

	for (size_t i = 0; i < rec->n; i++) {
		const struct record_row *row = &rec->row[i];

		if (row->column < COLUMN_DOSE || !row->win.delay_ns || !part_of(row, of, &part))
			continue;
		for (size_t l = 0; l < part.n_lanes; l++) {
			const struct lane_count *c = &part.lane[l];

			hits += (double)c->hits;
			asked += (double)c->hits * (double)row->win.delay_ns;
			given += (double)c->injected_ns - (double)c->overrun_ns;
		}
	}
	every = every ? every : 1;
	return hits >= GIVEN_HITS * (double)every ? given * (double)every / asked : NAN;
}

/* Weights that were made once: in shared blocks the target changes with each window. */
struct weights {
	struct {
		struct record_of of;
		double *w;
	} * made;
	size_t n;
};

static const double *weights_of(const struct record *rec, const struct record_of *of,
				const struct record_view *view, struct weights *weights)
{
	for (size_t i = weights->n; i-- > 0;)
		if (weights->made[i].of.experiment == of->experiment &&
		    weights->made[i].of.target == of->target)
			return weights->made[i].w;
	weights->made = must_realloc(weights->made, (weights->n + 1) * sizeof(*weights->made));
	weights->made[weights->n].of = *of;
	weights->made[weights->n].w = record_weights(rec, of, view, NULL);
	return weights->made[weights->n++].w;
}

void record_finish(struct record *rec, enum lane_mode mode)
{
	struct record_view view = { .mode = mode, .role = -1, .raw = true };
	struct weights weights = { 0 };

	for (size_t i = 0; i < rec->n; i++) {
		struct record_row *row = &rec->row[i];
		struct record_of of = { row->win.experiment, row->win.target, 0, 0 };
		const double *w = weights_of(rec, &of, &view, &weights);
		struct sums sums = { 0 };
		struct record_part part;
		struct infer_cell cell;

		part_of(row, &of, &part);
		sums_add(&sums, row, &part, &view, w);
		cell = sums_cell(rec, &sums, &view);
		row->win.x_total_ns = sums.injected;
		row->win.t_ns = cell.t;
		row->win.x_ns = cell.x;
		row->win.hits_per_item = row->win.arm == ARM_OFF ? NAN : cell.h;
	}
	for (size_t i = 0; i < weights.n; i++)
		free(weights.made[i].w);
	free(weights.made);
}
