/* SPDX-License-Identifier: MIT */
/* A sweep and a comparison as tables. */
#include "sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "sweep-adjust.h"
#include "sweep-changes.h"
#include "sweep-gain.h"
#include "sweep-quantiles.h"
#include "sweep-words.h"
#include "src/base/must.h"

static const struct out_col columns[] = {
	{ "target", OUT_NAME, 0 },	   { "kappa", OUT_FIGURE, 2 },
	{ "95% interval", OUT_TEXT, 1 },   { "slack", OUT_FIGURE, 2 },
	{ "gain ceiling", OUT_FIGURE, 2 }, { "hits/item", OUT_FIGURE, 2 },
	{ "time/item", OUT_FIGURE, 2 },	   { "doses", OUT_TEXT, 2 },
	{ "verdict", OUT_TEXT, 2 },
};

/* "1.25ms"; "-" if unknown. */
static char *time_of(double ns, char *buf, size_t size)
{
	static const struct {
		double from;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 0, "ns" } };
	double size_ns = fabs(ns);
	int i = 0;

	if (!isfinite(ns)) {
		snprintf(buf, size, "-");
		return buf;
	}
	while (units[i].from > 0 && size_ns < units[i].from)
		i++;
	snprintf(buf, size, "%.3g%s", ns / (units[i].from > 0 ? units[i].from : 1), units[i].unit);
	return buf;
}

static void add_kappa(struct out_grid *grid, struct sweep_estimate k)
{
	if (isnan(k.est))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%.2f", k.est);
	if (isnan(k.lo) || isnan(k.hi))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "[%.2f, %.2f]", k.lo, k.hi);
}

static void add_slack(struct out_grid *grid, const struct sweep_target *t)
{
	char a[32], b[32];

	switch (t->slack_kind) {
	case SLACK_NONE:
		out_grid_add(grid, "none");
		break;
	case SLACK_FOUND:
		out_grid_add(grid, "%s", time_of(t->slack_ns.est, a, sizeof(a)));
		break;
	case SLACK_BRACKET:
		out_grid_add(grid, "%s..%s", time_of(t->slack_ns.lo, a, sizeof(a)),
			     time_of(t->slack_ns.hi, b, sizeof(b)));
		break;
	case SLACK_BEYOND:
		out_grid_add(grid, ">= %s", time_of(t->slack_ns.lo, a, sizeof(a)));
		break;
	default:
		out_grid_add(grid, "-");
	}
}

static void add_doses(struct out_grid *grid, const struct sweep_target *t)
{
	char text[160] = "-", one[32];
	size_t used = 0;

	for (size_t i = 1; i < t->n_doses && used < sizeof(text) - 34; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 1 ? "," : "",
					 time_of((double)t->dose[i].delay_ns, one, sizeof(one)));
	out_grid_add(grid, "%s", text);
}

static void add_target(struct out_grid *grid, const struct sweep_target *t)
{
	char a[32];

	out_grid_add(grid, "%s", t->spec);
	add_kappa(grid, t->kappa);
	add_slack(grid, t);
	out_grid_add(grid, "%s", time_of(t->gain_ceiling_ns.est, a, sizeof(a)));
	if (isnan(t->hits_per_item))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%.4g%s", t->hits_per_item, t->hits_differ ? "!" : "");
	out_grid_add(grid, "%s", time_of(t->t0_ns, a, sizeof(a)));
	add_doses(grid, t);
	out_grid_add(grid, "%s%s", sweep_verdict_name(t->verdict), t->screened ? " (group)" : "");
}

enum { NAMES_MOST = 3, SENTENCES_MOST = 5 };

/* Prints a reason once, with the targets it applies to: "a, b, c and 115 more: ..." */
static void print_reason(FILE *to, const struct sweep_result *res, size_t n, size_t first)
{
	const char *reason = res->target[first].reason;
	size_t named = 0, more = 0;

	for (size_t i = 0; i < first; i++)
		if (!strcmp(res->target[i].reason, reason))
			return;
	for (size_t i = first; i < n; i++) {
		if (strcmp(res->target[i].reason, reason) != 0)
			continue;
		if (named == NAMES_MOST) {
			more++;
			continue;
		}
		fputs(named++ ? ", " : "", to);
		out_shown(to, res->target[i].spec);
	}
	if (more)
		fprintf(to, " and %zu more", more);
	fprintf(to, ": %s\n", reason);
}

static void print_part(FILE *to, const struct sweep_part *part)
{
	const struct sweep_estimate *k = &part->kappa;

	if (!isfinite(k->lo) || !isfinite(k->hi))
		return;
	fputs("  ", to);
	out_shown(to, part->name);
	fprintf(to, ": kappa %.2f [%.2f, %.2f], %.3g lane%s\n", k->est, k->lo, k->hi, part->lanes,
		part->lanes == 1 ? "" : "s");
}

static void print_reasons(FILE *to, const struct sweep_result *res, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct sweep_target *t = &res->target[i];

		if (t->reason[0])
			print_reason(to, res, n, i);
		if (t->hits_differ && !t->calls.ahead) {
			out_shown(to, t->spec);
			fprintf(to,
				": hits per item differ between arms (%+.1f %%): the delay changes "
				"what is done, or waiting absorbs it\n",
				t->hits_change.est * 100);
		}
		for (size_t k = 0; k < t->n_parts; k++)
			print_part(to, &t->part[k]);
	}
}

/* What the largest gain ceilings mean, in words. */
static void print_sentences(FILE *to, const struct sweep_result *res, const size_t *order, size_t n)
{
	char gain[32], item[32];

	for (size_t i = 0; i < n && i < SENTENCES_MOST; i++) {
		const struct sweep_target *t = &res->target[order[i]];
		double share = out_sweep_gain_share(t).est * 100;

		if (!isfinite(share))
			break;
		fputs("making ", to);
		out_shown(to, t->spec);
		fprintf(to, " free would save at most %s of ",
			time_of(t->gain_ceiling_ns.est, gain, sizeof(gain)));
		time_of(out_sweep_item_ns(t), item, sizeof(item));
		if (t->judged)
			fprintf(to, "p%.3g's %s", t->judged->share * 100, item);
		else
			fprintf(to, "%s a%s%s", item, t->n_quantiles ? " response" : "n item",
				out_sweep_item_ns(t) < t->t0_ns ? " without the hooks' cost" : "");
		fprintf(to, " (%.*f %%)\n", share < 10 ? 1 : 0, share);
	}
}

/* The reasons for a gain ceiling of "-", each once. */
static void print_gains(FILE *to, const struct sweep_result *res, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *why = res->target[i].gain_reason;
		bool said = !why[0] || isnan(res->target[i].kappa.est);

		for (size_t k = 0; k < i && !said; k++)
			said = !isnan(res->target[k].kappa.est) &&
			       !strcmp(why, res->target[k].gain_reason);
		if (!said)
			fprintf(to, "gain ceiling -: %s\n", why);
	}
}

static void print_gates(FILE *to, const struct sweep_result *res)
{
	const struct sweep_gates *g = &res->gates;
	char sham[32];

	if (g->aa_known)
		fprintf(to, "A/A %+.2f %% [%+.2f, %+.2f]%s", g->aa.est * 100, g->aa.lo * 100,
			g->aa.hi * 100, g->unproven ? " UNPROVEN" : "");
	else
		fputs("A/A -", to);
	fprintf(to, " · sham %s/item", time_of(g->sham_ns.est, sham, sizeof(sham)));
	fprintf(to, " · lanes %.3g (%s)", g->lanes, g->lane_mode ? g->lane_mode : "-");
	fprintf(to, " · load %s", sweep_load_name(g->load));
	if (g->control_asked)
		fprintf(to, " · control %.2f [%.2f, %.2f]%s", g->control.est, g->control.lo,
			g->control.hi, g->control_ok ? "" : " FAILED");
	fprintf(to, " · %.1f s · seed %" PRIu64 "\n", res->time_s, res->seed);
}

void out_sweep_table(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about)
{
	struct out_grid grid = { columns, sizeof(columns) / sizeof(*columns), NULL, 0 };
	size_t n = out_sweep_shown(res, about);
	size_t *order = out_sweep_by_gain(res, n);

	for (size_t i = 0; i < n; i++)
		add_target(&grid, &res->target[order[i]]);
	out_grid_print(&grid, to);
	print_sentences(to, res, order, n);
	free(order);
	print_reasons(to, res, n);
	print_gains(to, res, n);
	out_sweep_adjust(to, res, about, n);
	out_sweep_quantiles(to, res, n);
	out_sweep_changes(to, res, about, n);
	print_gates(to, res);
	if (out_sweep_crowded(about))
		fprintf(to, "processors %.0f %% busy: %s\n", about->busy * 100,
			out_sweep_crowded(about));
	for (size_t i = 0; i < res->n_warnings; i++) {
		out_shown(to, res->warning[i]);
		fputs("\n", to);
	}
	if (isfinite(res->time_needed_s))
		fprintf(to, "--time %.0fs would be enough for what was asked\n",
			ceil(res->time_needed_s));
	fputs("A slowdown says what more time costs; what less would bring is at most kappa x the "
	      "function's own time.\n",
	      to);
}

/* ---- compare ---- */

static const struct out_col compare_columns[] = {
	{ "target", OUT_NAME, 0 },    { "kappa A", OUT_FIGURE, 2 },    { "kappa B", OUT_FIGURE, 2 },
	{ "B - A", OUT_FIGURE, 2 },   { "95% interval", OUT_TEXT, 1 }, { "slack A", OUT_FIGURE, 2 },
	{ "slack B", OUT_FIGURE, 2 }, { "time/item", OUT_FIGURE, 2 },  { "changed", OUT_TEXT, 2 },
};

static void add_number(struct out_grid *grid, double v)
{
	if (isnan(v))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%.2f", v);
}

static void add_row(struct out_grid *grid, const struct compare_row *r)
{
	bool kappa = r->kappa_state == COMPARE_CHANGED, slack = r->slack_state == COMPARE_CHANGED;
	bool unknown = r->kappa_state == COMPARE_UNKNOWN;

	out_grid_add(grid, "%s", r->spec);
	add_number(grid, r->a ? r->a->kappa.est : NAN);
	add_number(grid, r->b ? r->b->kappa.est : NAN);
	add_kappa(grid, r->kappa);
	for (int i = 0; i < 2; i++) {
		const struct sweep_target *t = i ? r->b : r->a;

		if (t)
			add_slack(grid, t);
		else
			out_grid_add(grid, "-");
	}
	if (isnan(r->t0_ratio.est))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%+.1f%%", r->t0_ratio.est * 100);
	out_grid_add(grid, "%s%s",
		     !r->a	    ? "only in B" :
		     !r->b	    ? "only in A" :
		     kappa && slack ? "kappa, slack" :
		     kappa	    ? "kappa" :
		     slack	    ? "slack" :
		     unknown	    ? "unknown" :
				      "no",
		     r->verdict_changed ? " (verdict)" : "");
}

void out_compare_table(FILE *to, const struct compare *cmp)
{
	struct out_grid grid = { compare_columns,
				 sizeof(compare_columns) / sizeof(*compare_columns), NULL, 0 };

	for (size_t i = 0; i < cmp->n_rows; i++)
		add_row(&grid, &cmp->row[i]);
	out_grid_print(&grid, to);
	fprintf(to, "%zu of %zu changed (95 %%, Holm-corrected)\n", cmp->changed, cmp->n_rows);
}
