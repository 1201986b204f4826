/* SPDX-License-Identifier: MIT */
/* The evidence of a sweep as text. */
#include "sweep-changes.h"

#include <math.h>
#include "evidence.h"
#include "grid.h"
#include "out.h"
#include "sweep-words.h"

static const struct out_col columns[] = {
	{ "target", OUT_NAME, 0 },	 { "threads", OUT_TEXT, 2 },  { "counter", OUT_TEXT, 2 },
	{ "without", OUT_FIGURE, 2 },	 { "with", OUT_FIGURE, 2 },   { "change", OUT_FIGURE, 2 },
	{ "95% interval", OUT_TEXT, 1 }, { "per us", OUT_FIGURE, 2 }, { "p", OUT_FIGURE, 2 },
};

const char *out_sweep_side(enum sweep_side side)
{
	return side == SIDE_DELAYED ? "delayed" : "others";
}

static void figure(char *buf, size_t size, double v, bool time, bool sign)
{
	char text[32];

	if (!isfinite(v))
		snprintf(buf, size, "-");
	else if (time)
		snprintf(buf, size, "%s%s",
			 v < 0	       ? "-" :
			 v > 0 && sign ? "+" :
					 "",
			 out_time(fabs(v), text, sizeof(text)));
	else
		snprintf(buf, size, sign && v != 0 ? "%+.3g" : "%.3g", v);
}

static void add_figure(struct out_grid *grid, double v, bool time, bool sign)
{
	char text[40];

	figure(text, sizeof(text), v, time, sign);
	out_grid_add(grid, "%s", text);
}

static void add_row(struct out_grid *grid, const struct sweep_target *t, enum sweep_side side,
		    size_t counter, const struct sweep_change *c)
{
	bool time = sides_is_time(counter);
	char lo[40], hi[40];

	out_grid_add(grid, "%s", t->spec);
	out_grid_add(grid, "%s", out_sweep_side(side));
	out_grid_add(grid, "%s", sides_name(counter));
	add_figure(grid, c->sham, time, false);
	add_figure(grid, c->dose, time, false);
	add_figure(grid, c->delta.est, time, true);
	figure(lo, sizeof(lo), c->delta.lo, time, true);
	figure(hi, sizeof(hi), c->delta.hi, time, true);
	out_grid_add(grid, "[%s, %s]", lo, hi);
	add_figure(grid, 1e3 * c->slope.est, time, true);
	if (!isfinite(c->p_adjusted))
		out_grid_add(grid, "-");
	else if (c->p_adjusted < 0.001)
		out_grid_add(grid, "<0.001");
	else
		out_grid_add(grid, "%.3f%s", c->p_adjusted, c->significant ? "" : " no");
}

/* Significant ones; all of them where groups were named. */
static size_t add_target(struct out_grid *grid, const struct sweep_result *res,
			 const struct sweep_target *t, const struct sides_about *sides)
{
	size_t n = 0;

	for (size_t i = 0; t->change && i < SIDE_COUNT * res->n_counters; i++) {
		const struct sweep_change *c = &t->change[i];

		if (!c->significant && (!sides->groups_named || isnan(c->p_adjusted)))
			continue;
		add_row(grid, t, (enum sweep_side)(i / res->n_counters), i % res->n_counters, c);
		n++;
	}
	return n;
}

/* Futexes whose waits the delay changes. */
static void print_futexes(FILE *to, const struct sweep_target *t, size_t target,
			  const struct sides_about *sides)
{
	for (size_t i = 0; i < SIDE_COUNT * sides->n_futexes; i++) {
		const struct sides_futex *f = &sides->futex[i / SIDE_COUNT];
		const struct sides_futex_change *c = &f->change[i % SIDE_COUNT];
		char sham[40], dose[40], delta[40], lo[40], hi[40];

		if (f->target != target || !c->significant)
			continue;
		figure(sham, sizeof(sham), c->sham, true, false);
		figure(dose, sizeof(dose), c->dose, true, false);
		figure(delta, sizeof(delta), c->delta, true, true);
		figure(lo, sizeof(lo), c->lo, true, true);
		figure(hi, sizeof(hi), c->hi, true, true);
		out_shown(to, t->spec);
		fprintf(to, ": futex 0x%llx ", (unsigned long long)f->addr);
		if (f->caller[0] || f->symbol) {
			fputs("(", to);
			out_shown(to, f->caller[0] ? f->caller[0] : f->symbol);
			fputs(") ", to);
		}
		fprintf(to, "of %s threads: %s an item without, %s with, %s [%s, %s]\n",
			i % SIDE_COUNT == SIDE_DELAYED ? "delayed" : "other", sham, dose, delta, lo,
			hi);
	}
}

static size_t significant(const struct sweep_result *res)
{
	size_t n = 0;

	for (size_t t = 0; t < res->n_targets; t++)
		for (size_t i = 0; res->target[t].change && i < SIDE_COUNT * res->n_counters; i++)
			n += res->target[t].change[i].significant;
	return n;
}

static void print_source(FILE *to, const struct sweep_result *res, const struct sides_about *sides)
{
	if (!sides->read) {
		fprintf(to, "evidence -: %s; %s\n", sides->limit.what, err_remedy(&sides->limit));
		return;
	}
	fprintf(to, "evidence: %s; %zu of %zu changes significant (5 %%, Holm)",
		sides->bpf ? "BPF at each switch, alike in all arms" :
			     "/proc, read between windows",
		significant(res), res->n_tests);
	if (sides->sample > 1)
		fprintf(to, "; of frequent events one in %u, as %u", sides->sample, sides->sample);
	if (sides->limit.code)
		fprintf(to, "; what threads wait for is not known: %s; %s", sides->limit.what,
			err_remedy(&sides->limit));
	fputs("\n", to);
	out_hardware(to, &sides->hardware);
}

static void print_words(FILE *to, const struct sweep_result *res, const struct sweep_target *t,
			const struct out_sweep_about *about)
{
	char sentence[OUT_SENTENCES][OUT_SENTENCE];
	size_t n = out_sweep_words(res, t, about, sentence);

	if (!n)
		return;
	out_shown(to, t->spec);
	fprintf(to, ": %s: ", sweep_verdict_name(t->verdict));
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "; " : "", to);
		out_shown(to, sentence[i]);
	}
	fputs("\n", to);
}

void out_sweep_changes(FILE *to, const struct sweep_result *res,
		       const struct out_sweep_about *about, size_t n)
{
	struct out_grid grid = { columns, sizeof(columns) / sizeof(*columns), NULL, 0 };
	const struct sides_about *sides = about->sides;
	size_t rows = 0;

	if (!sides || (!sides->read && !sides->limit.code))
		return;
	for (size_t i = 0; i < n; i++)
		print_words(to, res, &res->target[i], about);
	for (size_t i = 0; i < n && sides->asked; i++)
		rows += add_target(&grid, res, &res->target[i], sides);
	if (rows)
		out_grid_print(&grid, to);
	for (size_t i = 0; i < n && sides->asked; i++)
		print_futexes(to, &res->target[i], i, sides);
	print_source(to, res, sides);
}
