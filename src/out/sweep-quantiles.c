/* SPDX-License-Identifier: MIT */
#include "sweep-quantiles.h"

#include <math.h>
#include <string.h>
#include "grid.h"
#include "out.h"

#define WIDE 0.1 /* a bucket, by the quantile */

static const struct out_col columns[] = {
	{ "response", OUT_NAME, 0 },	   { "", OUT_TEXT, 1 },
	{ "no delay", OUT_FIGURE, 2 },	   { "largest dose", OUT_FIGURE, 2 },
	{ "change", OUT_FIGURE, 2 },	   { "95% interval", OUT_TEXT, 1 },
	{ "per injected", OUT_FIGURE, 2 }, { "95% interval", OUT_TEXT, 1 },
};

/* "1.25ms", "+31us"; "-" if unknown. */
static char *time_of(double ns, bool sign, char *buf, size_t size)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	int i = 0;

	if (!isfinite(ns)) {
		snprintf(buf, size, "-");
		return buf;
	}
	for (; fabs(ns) >= 1000 && i < 3; i++)
		ns /= 1000;
	snprintf(buf, size, sign ? "%+.3g%s" : "%.3g%s", ns, unit[i]);
	return buf;
}

static void add_times(struct out_grid *grid, const struct sweep_estimate *e)
{
	char est[32], lo[32], hi[32];

	out_grid_add(grid, "%s", time_of(e->est, true, est, sizeof(est)));
	if (isfinite(e->lo) && isfinite(e->hi))
		out_grid_add(grid, "[%s, %s]", time_of(e->lo, true, lo, sizeof(lo)),
			     time_of(e->hi, true, hi, sizeof(hi)));
	else
		out_grid_add(grid, "-");
}

static void add_slope(struct out_grid *grid, const struct sweep_estimate *e)
{
	if (isfinite(e->est))
		out_grid_add(grid, "%.2f", e->est);
	else
		out_grid_add(grid, "-");
	if (isfinite(e->lo) && isfinite(e->hi))
		out_grid_add(grid, "[%.2f, %.2f]", e->lo, e->hi);
	else
		out_grid_add(grid, "-");
}

static void add_mean(struct out_grid *grid, const struct sweep_target *t)
{
	const struct sweep_quantile *mean = &t->mean;
	char a[32];

	out_grid_add(grid, "%s", t->spec);
	out_grid_add(grid, "mean");
	out_grid_add(grid, "%s", time_of(mean->sham_ns.est, false, a, sizeof(a)));
	out_grid_add(grid, "%s", time_of(mean->dose_ns, false, a, sizeof(a)));
	add_times(grid, &mean->delta_ns);
	add_slope(grid, &mean->slope);
}

static void add_quantile(struct out_grid *grid, const struct sweep_quantile *q)
{
	char a[32];

	out_grid_add(grid, "%s", "");
	out_grid_add(grid, "p%.3g", q->share * 100);
	out_grid_add(grid, "%s", time_of(q->sham_ns.est, false, a, sizeof(a)));
	out_grid_add(grid, "%s", time_of(q->dose_ns, false, a, sizeof(a)));
	add_times(grid, &q->delta_ns);
	add_slope(grid, &q->slope);
}

/* Why there is no figure, and what the buckets do tell. */
static void print_reason(FILE *to, const struct sweep_target *t, const struct sweep_quantile *q)
{
	double width = q->bucket_ns[0][1] - q->bucket_ns[0][0];
	char bound[32];

	if (!q->reason[0])
		return;
	out_shown(to, t->spec);
	fprintf(to, ": p%.3g: %s", q->share * 100, q->reason);
	if (q->unresolved && width > WIDE * q->sham_ns.est && isfinite(q->slower_delta.lo) &&
	    isfinite(q->slower_delta.hi))
		fprintf(to,
			"; %.3g %% of responses take longer than %s, with the delay %+.3g %% "
			"[%+.3g, %+.3g] more",
			100 * q->slower, time_of(q->bound_ns, false, bound, sizeof(bound)),
			100 * q->slower_delta.est, 100 * q->slower_delta.lo,
			100 * q->slower_delta.hi);
	fputs("\n", to);
}

/* By Little's law, and how busy the busiest thread is: how far it is from saturation. */
static void print_queue(FILE *to, const struct sweep_target *t)
{
	const struct sweep_queue *q = &t->queue;
	char most[32];

	if (!t->n_quantiles || !isfinite(q->in_system) || !isfinite(q->in_system_dose))
		return;
	out_shown(to, t->spec);
	fprintf(to, ": %.3g in the system on average, %.3g with the largest dose", q->in_system,
		q->in_system_dose);
	if (isfinite(q->utilisation) && isfinite(q->utilisation_dose))
		fprintf(to, "; busiest thread %.0f %% busy, %.0f %%", q->utilisation * 100,
			q->utilisation_dose * 100);
	fprintf(to, "; %.4g completed a second, %.4g\n", q->completed_s, q->completed_s_dose);
	if (!q->shaped)
		return;
	out_shown(to, t->spec);
	fprintf(to,
		": grows as in a queue, which %s more a response would saturate; kappa is its "
		"slope at "
		"no delay\n",
		time_of(q->most_ns, false, most, sizeof(most)));
}

void out_sweep_quantiles(FILE *to, const struct sweep_result *res, size_t n)
{
	struct out_grid grid = { columns, sizeof(columns) / sizeof(*columns), NULL, 0 };
	bool any = false;
	double judged = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sweep_target *t = &res->target[i];

		if (!t->n_quantiles || !t->n_doses)
			continue;
		any = true;
		if (t->judged)
			judged = t->judged->share;
		add_mean(&grid, t);
		for (size_t k = 0; k < t->n_quantiles; k++)
			add_quantile(&grid, &t->quantile[k]);
	}
	if (!any)
		return;
	fputs("\n", to);
	out_grid_print(&grid, to);
	if (judged > 0)
		fprintf(to, "kappa, verdict and gain ceiling are of p%.3g\n", judged * 100);
	for (size_t i = 0; i < n; i++)
		print_queue(to, &res->target[i]);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < res->target[i].n_quantiles; k++)
			print_reason(to, &res->target[i], &res->target[i].quantile[k]);
	fputs("\n", to);
}
