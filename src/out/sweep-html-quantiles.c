/* SPDX-License-Identifier: MIT */
/* The page's table of what a delay changes of the quantiles of a response. */
#include <math.h>
#include "sweep-html.h"
#include "page.h"

static void estimate(FILE *f, enum page_kind kind, struct sweep_estimate e)
{
	fputs("<td>", f);
	page_figure(f, kind, e.est);
	fputs(" ", f);
	if (isfinite(e.lo) && isfinite(e.hi))
		page_interval(f, kind, e);
	fputs("</td>", f);
}

static void row(FILE *f, const struct sweep_quantile *q)
{
	fprintf(f, "<tr><th scope=\"row\">p%.3g</th><td>", q->share * 100);
	page_figure(f, PAGE_TIME, q->sham_ns.est);
	fputs("</td>", f);
	estimate(f, PAGE_TIME_CHANGE, q->delta_ns);
	estimate(f, PAGE_KAPPA, q->slope);
	fputs("</tr>\n", f);
}

void sweep_page_quantiles(const struct sweep_page *p, const struct sweep_target *t)
{
	FILE *f = p->f;

	if (!t->n_quantiles)
		return;
	fputs("<table><caption>Quantiles of the response</caption><thead><tr>"
	      "<th scope=\"col\"></th><th scope=\"col\">no delay</th>"
	      "<th scope=\"col\">change by the largest dose</th>"
	      "<th scope=\"col\">for each ns injected</th></tr></thead>\n<tbody>\n",
	      f);
	for (size_t i = 0; i < t->n_quantiles; i++)
		row(f, &t->quantile[i]);
	fputs("</tbody></table>\n", f);
	for (size_t i = 0; i < t->n_quantiles; i++)
		if (t->quantile[i].reason[0]) {
			fprintf(f, "<p>p%.3g: ", t->quantile[i].share * 100);
			page_said(f, t->quantile[i].reason);
			fputs("</p>\n", f);
		}
}
