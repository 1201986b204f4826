/* SPDX-License-Identifier: MIT */
#include "sides-windows.h"

#include <math.h>
#include <stdlib.h>
#include "src/base/must.h"
#include "sweep/infer.h"
#include "sweep/stat.h"

#define LEVEL 0.05

enum { ANY = -1 }; /* each number */

struct growth {
	uint64_t end_ns;
	size_t target, number;
	enum sweep_side side;
	double ns;
};

struct sides_windows {
	struct growth *growth; /* by end_ns */
	size_t n, cap;
	uint64_t end_ns;
};

struct sides_windows *sides_windows_open(void)
{
	return must_calloc(1, sizeof(struct sides_windows));
}

void sides_windows_close(struct sides_windows *w)
{
	if (!w)
		return;
	free(w->growth);
	free(w);
}

void sides_windows_begin(struct sides_windows *w, uint64_t end_ns)
{
	w->end_ns = end_ns;
}

static void append(struct sides_windows *w, const struct growth *growth)
{
	if (w->n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 256;
		w->growth = must(reallocarray(w->growth, w->cap, sizeof(*w->growth)));
	}
	w->growth[w->n++] = *growth;
}

void sides_windows_read(struct sides_windows *w, size_t target)
{
	append(w, &(struct growth){ w->end_ns, target, 0, SIDE_DELAYED, 0 });
}

/* Threads wait for the same few: one entry for each of a window. */
void sides_windows_add(struct sides_windows *w, size_t target, enum sweep_side side, size_t number,
		       double ns)
{
	for (size_t i = w->n; i > 0 && w->growth[i - 1].end_ns == w->end_ns; i--) {
		struct growth *g = &w->growth[i - 1];

		if (g->target == target && g->side == side && g->number == number) {
			g->ns += ns;
			return;
		}
	}
	append(w, &(struct growth){ w->end_ns, target, number, side, ns });
}

/* ---- the blocks of a target ---- */

struct blocks {
	size_t target, n;
	int experiment, dose;
};

static bool is_dose(const struct sweep_window *win, size_t target)
{
	return win->arm == ARM_DOSE && win->target == (int)target && win->experiment >= 0 &&
	       win->block >= 0;
}

static size_t doses_in(const struct sweep_result *res, size_t target, int experiment)
{
	size_t n = 0;

	for (size_t i = 0; i < res->n_windows; i++)
		n += is_dose(&res->window[i], target) && res->window[i].experiment == experiment;
	return n;
}

/* False: no window has the target delayed. */
static bool find_blocks(const struct sweep_result *res, size_t target, struct blocks *b)
{
	size_t best = 0;

	*b = (struct blocks){ .target = target };
	for (size_t i = 0; i < res->n_windows; i++) {
		const struct sweep_window *win = &res->window[i];
		size_t n;

		if (!is_dose(win, target) || (best && win->experiment == b->experiment))
			continue;
		n = doses_in(res, target, win->experiment);
		if (n <= best)
			continue;
		best = n;
		b->experiment = win->experiment;
	}
	for (size_t i = 0; best && i < res->n_windows; i++) {
		const struct sweep_window *win = &res->window[i];

		if (win->experiment != b->experiment || win->block < 0)
			continue;
		if (is_dose(win, target) && win->dose > b->dose)
			b->dose = win->dose;
		if ((size_t)win->block >= b->n)
			b->n = (size_t)win->block + 1;
	}
	return best > 0;
}

static size_t first_at(const struct sides_windows *w, uint64_t end_ns)
{
	size_t lo = 0, hi = w->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (w->growth[mid].end_ns < end_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Of one window; NAN: it was not read for the target. */
static double growth_in(const struct sides_windows *w, uint64_t end_ns, size_t target,
			enum sweep_side side, long number)
{
	double ns = NAN;

	for (size_t i = first_at(w, end_ns); i < w->n && w->growth[i].end_ns == end_ns; i++) {
		const struct growth *g = &w->growth[i];

		if (g->target != target)
			continue;
		ns = isnan(ns) ? 0 : ns;
		if (g->side == side && (number == ANY || g->number == (size_t)number))
			ns += g->ns;
	}
	return ns;
}

/* Cells of SHAM and of the largest dose; a cell without items is NAN. The caller frees. */
static struct infer_cell *cells_of(const struct sides_windows *w, const struct sweep_result *res,
				   const struct blocks *b, enum sweep_side side, long number)
{
	struct infer_cell *cell = must_calloc(2 * b->n, sizeof(*cell));
	double *items = must_calloc(2 * b->n, sizeof(*items));

	for (size_t i = 0; i < res->n_windows; i++) {
		const struct sweep_window *win = &res->window[i];
		bool dose = is_dose(win, b->target) && win->dose == b->dose;
		double ns;
		size_t at;

		if (win->experiment != b->experiment || win->block < 0 ||
		    (!dose && win->arm != ARM_SHAM))
			continue;
		ns = growth_in(w, win->end_ns, b->target, side, number);
		if (isnan(ns))
			continue;
		at = 2 * (size_t)win->block + dose;
		cell[at].t += ns;
		items[at] += win->items;
	}
	for (size_t i = 0; i < 2 * b->n; i++)
		cell[i].t = items[i] > 0 ? cell[i].t / items[i] : NAN;
	free(items);
	return cell;
}

/* ---- the change ---- */

static const struct sides_futex_change unknown = { NAN, NAN, NAN, NAN, NAN, NAN, false };

/* As much of the lanes as account.c counts. */
static double share_of_lanes(const struct sides_windows *w, const struct sweep_result *res,
			     const struct blocks *b)
{
	const struct sweep_change *whole = res->target[b->target].change;
	struct infer_data data = { .n_blocks = b->n, .n_arms = 2 };
	struct infer_cell *cell = cells_of(w, res, b, SIDE_DELAYED, ANY);
	double own, share;

	data.cell = cell;
	own = infer_level(&data, 0).t;
	free(cell);
	share = whole && own > 0 ? whole[EVIDENCE_FUTEX].sham / own : 1;
	return share > 0 && share < 1 ? share : 1;
}

static void change_of(const struct sides_windows *w, const struct sweep_result *res,
		      const struct blocks *b, enum sweep_side side, double share,
		      struct sides_futex *f)
{
	struct infer_cell *cell = cells_of(w, res, b, side, (long)f->number);
	struct infer_data data = { .n_blocks = b->n, .n_arms = 2, .cell = cell };
	struct sides_futex_change *c = &f->change[side];
	struct sweep_estimate delta;
	bool any = false;

	for (size_t i = 0; i < 2 * b->n; i++) {
		cell[i].t *= share;
		any |= cell[i].t > 0;
	}
	c->sham = infer_level(&data, 0).t;
	c->dose = infer_level(&data, 1).t;
	if (any) {
		delta = infer_delta(&data, 1, &c->p_adjusted);
		c->delta = delta.est;
		c->lo = delta.lo;
		c->hi = delta.hi;
	}
	free(cell);
}

static void judge(const struct sweep_result *res, struct sides_about *about)
{
	size_t n = SIDE_COUNT * about->n_futexes;
	double *p = must_calloc(n, sizeof(*p));

	for (size_t i = 0; i < n; i++)
		p[i] = about->futex[i / SIDE_COUNT].change[i % SIDE_COUNT].p_adjusted;
	stat_holm(p, n);
	for (size_t i = 0; i < n; i++) {
		struct sides_futex_change *c = &about->futex[i / SIDE_COUNT].change[i % SIDE_COUNT];

		c->p_adjusted = p[i];
		c->significant = p[i] < LEVEL && !res->gates.unproven;
	}
	free(p);
}

void sides_windows_compare(const struct sides_windows *w, const struct sweep_result *res,
			   struct sides_about *about)
{
	for (size_t i = 0; i < about->n_futexes; i++) {
		struct sides_futex *f = &about->futex[i];
		struct blocks b;

		f->change[SIDE_DELAYED] = f->change[SIDE_OTHERS] = unknown;
		if (f->target >= res->n_targets || !find_blocks(res, f->target, &b))
			continue;
		change_of(w, res, &b, SIDE_DELAYED, share_of_lanes(w, res, &b), f);
		change_of(w, res, &b, SIDE_OTHERS, 1, f);
	}
	judge(res, about);
}
