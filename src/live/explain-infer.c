/* SPDX-License-Identifier: MIT */
#include "explain-infer.h"

#include <math.h>
#include <stdlib.h>
#include "explain-futex.h"
#include "src/base/must.h"

#define CONFIDENCE 0.95
#define TOLERANCE  0.01 /* of the time, between the sum of the parts and the clock */

/* One thread through all blocks. */
struct track {
	struct evidence_thread who;
	double (*ns)[EVIDENCE_REASONS]; /* by block */
	double *span, *wall;		/* wall: by the clock, between its readings */
	double total, on_cpu;
	bool active, whole; /* it did something; it was there from the first edge to the last */
};

struct infer {
	const struct explain_edge *edge;
	size_t blocks;
	bool parts;
	struct track *track;
	size_t n_tracks;
	double *items, *wall;		  /* by block */
	double (*sum)[EVIDENCE_COUNTERS]; /* of all threads that are not idle */
	double *span;
	struct explain_result *res;
};

static struct track *track_of(struct infer *x, const struct evidence_thread *t)
{
	struct track *track;

	for (size_t i = 0; i < x->n_tracks; i++)
		if (x->track[i].who.tid == t->tid && x->track[i].who.began_ns == t->began_ns)
			return &x->track[i];
	x->track = must(reallocarray(x->track, x->n_tracks + 1, sizeof(*x->track)));
	track = &x->track[x->n_tracks++];
	*track = (struct track){ .who = *t };
	track->ns = must_calloc(x->blocks, sizeof(*track->ns));
	track->span = must_calloc(x->blocks, sizeof(*track->span));
	track->wall = must_calloc(x->blocks, sizeof(*track->wall));
	return track;
}

static void add_thread(struct infer *x, size_t block, const struct evidence_thread *was,
		       const struct evidence_thread *is)
{
	struct evidence_values d = is->values;
	struct track *track = track_of(x, is);

	if (was)
		evidence_values_take(&d, &was->values);
	for (int i = 0; i < EVIDENCE_REASONS; i++)
		track->ns[block][i] = (double)d.of[i];
	track->span[block] = (double)(is->span_ns - (was ? was->span_ns : 0));
	track->wall[block] = was ? (double)(is->t_ns - was->t_ns) : x->wall[block];
	track->total += track->span[block];
	track->on_cpu += (double)d.of[EVIDENCE_ON_CPU];
	track->active |= d.of[EVIDENCE_ON_CPU] || d.of[EVIDENCE_RUN_QUEUE] ||
			 d.of[EVIDENCE_VOLUNTARY] || d.of[EVIDENCE_INVOLUNTARY];
}

static void add_block(struct infer *x, size_t block)
{
	const struct evidence_reading *a = &x->edge[block].reading,
				      *b = &x->edge[block + 1].reading;
	struct evidence_values d = b->sum;

	x->wall[block] = (double)(b->t_ns - a->t_ns);
	x->items[block] = x->edge[block + 1].items - x->edge[block].items;
	for (size_t i = 0; i < b->n_threads; i++)
		add_thread(x, block, evidence_find(a, &b->thread[i]), &b->thread[i]);
	evidence_values_take(&d, &a->sum);
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		x->sum[block][i] = (double)d.of[i];
}

/* Without the threads that did nothing at all: they wait for no item. */
static void leave_idle_out(struct infer *x)
{
	const struct evidence_reading *first = &x->edge[0].reading,
				      *last = &x->edge[x->blocks].reading;

	for (size_t i = 0; i < x->n_tracks; i++) {
		struct track *t = &x->track[i];

		t->whole = evidence_find(first, &t->who) && evidence_find(last, &t->who);
		x->res->idle += !t->active;
		for (size_t b = 0; b < x->blocks; b++) {
			for (int r = 0; r < EVIDENCE_REASONS && !t->active; r++)
				x->sum[b][r] = fmax(0, x->sum[b][r] - t->ns[b][r]);
			if (t->active)
				x->span[b] += t->span[b];
		}
	}
}

/* With all reasons known their sum is the time of the threads, those that ended included. */
static void sum_spans(struct infer *x)
{
	for (size_t b = 0; b < x->blocks && x->parts; b++) {
		x->span[b] = 0;
		for (int r = 0; r < EVIDENCE_REASONS; r++)
			x->span[b] += x->sum[b][r];
	}
}

static struct ratio per_item(const struct infer *x, const double *part)
{
	return ratio_of(part, x->items, x->blocks, CONFIDENCE);
}

/* ns by block and reason, of which each block has `span`, become ns of `scale` of an item. */
static void fill_part(const struct infer *x, struct explain_part *out, size_t stride,
		      const double *ns, const double *span, const double *scale)
{
	double *part = must_calloc(x->blocks, sizeof(*part));
	double *off = must_calloc(x->blocks, sizeof(*off));

	for (size_t b = 0; b < x->blocks; b++)
		off[b] = span[b] > 0 ? scale[b] : 0;
	for (int r = 0; r < EVIDENCE_REASONS; r++) {
		for (size_t b = 0; b < x->blocks; b++) {
			part[b] = span[b] > 0 ? ns[b * stride + (size_t)r] * scale[b] / span[b] : 0;
			if (r <= EVIDENCE_RUN_QUEUE)
				off[b] -= part[b];
		}
		out->reason[r] = x->parts || r <= EVIDENCE_RUN_QUEUE ? per_item(x, part) :
								       ratio_unknown;
	}
	out->off_cpu = per_item(x, off);
	out->off_cpu.est = fmax(0, out->off_cpu.est); /* /proc is behind by a tick */
	free(off);
	free(part);
}

static void fill_counters(struct infer *x)
{
	double *part = must_calloc(x->blocks, sizeof(*part));

	for (int i = 0; i < EVIDENCE_COUNTERS; i++) {
		for (size_t b = 0; b < x->blocks; b++)
			part[b] = x->sum[b][i];
		x->res->counter[i] = per_item(x, part);
	}
	free(part);
}

static int by_work(const void *a, const void *b)
{
	const struct track *x = a, *y = b;

	if (x->active != y->active)
		return x->active ? -1 : 1;
	return (x->on_cpu < y->on_cpu) - (x->on_cpu > y->on_cpu);
}

/* Of a thread that was there all the time: its parts against the clock, each kept by itself. */
static void check_sum(struct infer *x, const struct track *t)
{
	double sum = 0, wall = 0;

	for (size_t b = 0; b < x->blocks; b++) {
		wall += t->wall[b];
		for (int r = 0; r < EVIDENCE_REASONS; r++)
			sum += t->ns[b][r];
	}
	if (t->whole && x->parts)
		x->res->off_by = fmax(isnan(x->res->off_by) ? 0 : x->res->off_by,
				      fabs(sum - wall) / wall);
}

static void fill_threads(struct infer *x, double wall)
{
	struct explain_result *res = x->res;

	if (x->n_tracks)
		qsort(x->track, x->n_tracks, sizeof(*x->track), by_work);
	res->thread = must_calloc(x->n_tracks, sizeof(*res->thread));
	for (size_t i = 0; i < x->n_tracks; i++) {
		struct track *t = &x->track[i];
		struct explain_thread *out = &res->thread[res->n_threads];

		check_sum(x, t);
		if (!t->active)
			continue;
		out->pid = t->who.pid;
		out->tid = t->who.tid;
		out->watched = fmin(1, t->total / wall);
		for (size_t b = 0; b < x->blocks; b++) /* of the block, not of its readings */
			t->wall[b] = t->wall[b] > 0 ? t->span[b] / t->wall[b] * x->wall[b] : 0;
		fill_part(x, &out->part, EVIDENCE_REASONS, &t->ns[0][0], t->span, t->wall);
		res->n_threads++;
	}
}

static void fill_futexes(struct infer *x)
{
	struct evidence_thread *idle = must_calloc(x->n_tracks, sizeof(*idle));
	double *futex = must_calloc(x->blocks, sizeof(*futex));
	struct explain_futex_cfg cfg = { x->edge, x->blocks, x->items, x->wall,
					 x->span, futex,     idle,     0 };

	for (size_t i = 0; i < x->n_tracks; i++)
		if (!x->track[i].active)
			idle[cfg.n_idle++] = x->track[i].who;
	for (size_t b = 0; b < x->blocks; b++)
		futex[b] = x->sum[b][EVIDENCE_FUTEX];
	explain_futexes(&cfg, x->res);
	free(futex);
	free(idle);
}

static void infer(struct infer *x)
{
	struct explain_result *res = x->res;
	double wall = 0, spans = 0;

	for (size_t b = 0; b < x->blocks; b++)
		add_block(x, b);
	leave_idle_out(x);
	sum_spans(x);
	for (size_t b = 0; b < x->blocks; b++) {
		wall += x->wall[b];
		spans += x->span[b];
		res->items += x->items[b];
	}
	res->blocks = x->blocks;
	res->time_s = wall / 1e9;
	res->threads = spans / wall;
	res->time_per_item = per_item(x, x->wall);
	res->off_by = NAN;
	fill_part(x, &res->whole, EVIDENCE_COUNTERS, &x->sum[0][0], x->span, x->wall);
	fill_counters(x);
	fill_futexes(x);
	fill_threads(x, wall);
	res->adds_up = res->off_by <= TOLERANCE;
}

struct explain_result *explain_infer(const struct explain_edge *edge, size_t n, bool parts)
{
	struct infer x = { .edge = edge, .blocks = n - 1, .parts = parts };
	struct explain_result *res = must_calloc(1, sizeof(*res));

	x.res = res;
	x.items = must_calloc(x.blocks, sizeof(*x.items));
	x.wall = must_calloc(x.blocks, sizeof(*x.wall));
	x.span = must_calloc(x.blocks, sizeof(*x.span));
	x.sum = must_calloc(x.blocks, sizeof(*x.sum));
	infer(&x);
	for (size_t i = 0; i < x.n_tracks; i++) {
		free(x.track[i].ns);
		free(x.track[i].span);
		free(x.track[i].wall);
	}
	free(x.track);
	free(x.items);
	free(x.wall);
	free(x.span);
	free(x.sum);
	return res;
}
