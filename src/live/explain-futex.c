/* SPDX-License-Identifier: MIT */
#include "explain-futex.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"

#define CONFIDENCE 0.95
#define TOLERANCE  0.01 /* of the time in futexes, between the sum of the addresses and it */

/* An address through all blocks. */
struct row {
	size_t number;
	double *ns, *waits; /* by block */
	double total;
};

static void add(struct row *row, size_t block, const struct evidence_futex *f, double sign)
{
	row->ns[block] += sign * (double)f->ns;
	row->waits[block] += sign * (double)f->waits;
}

/* The growth between two edges of what all threads waited. */
static void add_edges(const struct explain_futex_cfg *cfg, struct row *row)
{
	for (size_t b = 0; b < cfg->blocks; b++) {
		const struct evidence_reading *was = &cfg->edge[b].reading,
					      *is = &cfg->edge[b + 1].reading;

		if (row->number < is->n_futexes)
			add(row, b, &is->futex[row->number], 1);
		if (row->number < was->n_futexes)
			add(row, b, &was->futex[row->number], -1);
	}
}

static void add_thread(struct row *rows, size_t n, size_t block, const struct evidence_thread *t,
		       double sign)
{
	for (int i = 0; t && i < EVIDENCE_FUTEX_PARTS; i++) {
		const struct evidence_futex_part *part = &t->futex[i];
		struct evidence_futex f = { .ns = part->ns, .waits = part->waits };

		if (part->number < n)
			add(&rows[part->number], block, &f, sign);
	}
}

static void leave_idle_out(const struct explain_futex_cfg *cfg, struct row *rows, size_t n)
{
	for (size_t i = 0; i < cfg->n_idle; i++)
		for (size_t b = 0; b < cfg->blocks; b++) {
			add_thread(rows, n, b,
				   evidence_find(&cfg->edge[b + 1].reading, &cfg->idle[i]), -1);
			add_thread(rows, n, b, evidence_find(&cfg->edge[b].reading, &cfg->idle[i]),
				   1);
		}
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (!x->number != !y->number) /* those that are not distinguished */
		return x->number ? -1 : 1;
	return (x->total < y->total) - (x->total > y->total);
}

static void fill(const struct explain_futex_cfg *cfg, const struct row *row,
		 struct explain_futex *out)
{
	double *part = must_calloc(cfg->blocks, sizeof(*part));

	for (size_t b = 0; b < cfg->blocks; b++)
		part[b] = cfg->span[b] > 0 ? row->ns[b] * cfg->wall[b] / cfg->span[b] : 0;
	out->time = ratio_of(part, cfg->items, cfg->blocks, CONFIDENCE);
	out->all = ratio_of(row->ns, cfg->items, cfg->blocks, CONFIDENCE);
	out->waits = ratio_of(row->waits, cfg->items, cfg->blocks, CONFIDENCE);
	free(part);
}

static void describe(const struct explain_futex_cfg *cfg, const struct row *row,
		     struct explain_futex *out)
{
	const struct evidence_futex *f = &cfg->edge[cfg->blocks].reading.futex[row->number];

	out->number = row->number;
	out->pid = f->pid;
	out->addr = f->addr;
	fill(cfg, row, out);
}

/* All others become one. */
static void fill_rest(const struct explain_futex_cfg *cfg, struct row *rows, size_t n,
		      struct explain_result *res)
{
	for (size_t i = 1; i < n; i++)
		for (size_t b = 0; b < cfg->blocks; b++) {
			rows[0].ns[b] += rows[i].ns[b];
			rows[0].waits[b] += rows[i].waits[b];
		}
	for (size_t i = 0; i < n; i++)
		res->futexes_rest += rows[i].number && rows[i].total > 0;
	if (n)
		fill(cfg, rows, &res->futex_rest);
}

static void check_sum(const struct explain_futex_cfg *cfg, const struct row *rows, size_t n,
		      struct explain_result *res)
{
	double sum = 0, whole = 0;

	for (size_t i = 0; i < n; i++)
		sum += rows[i].total;
	for (size_t b = 0; b < cfg->blocks; b++)
		whole += cfg->futex[b];
	res->futexes_off_by = whole > 0 ? fabs(sum - whole) / whole : NAN;
	res->futexes_add_up = res->futexes_off_by <= TOLERANCE;
}

void explain_futexes(const struct explain_futex_cfg *cfg, struct explain_result *res)
{
	size_t n = cfg->edge[cfg->blocks].reading.n_futexes, most = 0;
	struct row *rows = must_calloc(n, sizeof(*rows));

	res->futexes_off_by = NAN;
	for (size_t i = 0; i < n; i++) {
		rows[i].number = i;
		rows[i].ns = must_calloc(cfg->blocks, sizeof(*rows[i].ns));
		rows[i].waits = must_calloc(cfg->blocks, sizeof(*rows[i].waits));
		add_edges(cfg, &rows[i]);
	}
	leave_idle_out(cfg, rows, n);
	for (size_t i = 0; i < n; i++)
		for (size_t b = 0; b < cfg->blocks; b++)
			rows[i].total += rows[i].ns[b];
	if (n)
		qsort(rows, n, sizeof(*rows), by_time);
	while (most < n && most < EXPLAIN_FUTEXES && rows[most].number && rows[most].total > 0)
		most++;
	check_sum(cfg, rows, n, res);
	for (size_t i = 0; i < most; i++)
		describe(cfg, &rows[i], &res->futex[i]);
	res->n_futexes = most;
	fill_rest(cfg, rows + most, n - most, res);
	for (size_t i = 0; i < n; i++) {
		free(rows[i].ns);
		free(rows[i].waits);
	}
	free(rows);
}
