/* SPDX-License-Identifier: MIT */
/*
 * The result of a sweep as one page for a reader without the terminal's output: the answer in
 * sentences, a table, each target with its picture and its reasons, how sure all that is, and where
 * it is from. One file without scripts, which fetches nothing.
 */
#include "sweep-html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "host.h"
#include "page.h"
#include "place.h"
#include "sweep-changes.h"
#include "sweep-gain.h"
#include "sweep-headline.h"
#include "sweep-words.h"

static void answer(const struct sweep_page *p)
{
	struct out_headline h;

	out_sweep_headline(p->res, p->about, &h);
	fputs("<header>\n<p class=\"kind\">sbinject sweep: what limits a program</p>\n<h1>", p->f);
	if (h.n)
		page_said(p->f, h.line[0]);
	fputs("</h1>\n", p->f);
	for (size_t i = 1; i < h.n; i++) {
		fputs("<p class=\"lead\">", p->f);
		page_said(p->f, h.line[i]);
		fputs("</p>\n", p->f);
	}
	fputs("<p>Each function was delayed, switched on and off at random while the program ran. "
	      "<b>kappa</b> is the part of a delay that the program feels: all of it at 1, nothing "
	      "of it at 0. The <b>gain ceiling</b> is the most that a faster function could bring; "
	      "a slowdown does not prove that it would.</p>\n</header>\n",
	      p->f);
	out_headline_free(&h);
}

static void reasons(const struct sweep_page *p, const struct sweep_target *t)
{
	char sentence[OUT_SENTENCES][OUT_SENTENCE];
	size_t n = out_sweep_words(p->res, t, p->about, sentence);
	const char *why[] = { t->reason, isnan(t->inclusive_ns.est) ? t->inclusive_reason : "",
			      isnan(t->gain_ceiling_ns.est) ? t->gain_reason : "",
			      t->slack_kind == SLACK_UNKNOWN ? t->slack_reason : "" };
	static const char *const of[] = { "", "Own time: ", "Gain ceiling: ", "Slack: " };

	fputs("<ul class=\"reasons\">\n", p->f);
	for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
		if (!why[i][0])
			continue;
		fprintf(p->f, "<li>%s", of[i]);
		page_said(p->f, why[i]);
		fputs("</li>\n", p->f);
		if (i == 0)
			for (size_t k = 0; k < n; k++) {
				fputs("<li>", p->f);
				page_said(p->f, sentence[k]);
				fputs("</li>\n", p->f);
			}
	}
	fputs("</ul>\n", p->f);
}

static void fact(FILE *f, const char *name, enum page_kind kind, double v)
{
	if (!isfinite(v))
		return;
	fprintf(f, "<div><dt>%s</dt><dd>", name);
	page_figure(f, kind, v);
	fputs("</dd></div>\n", f);
}

static void fact_interval(FILE *f, const char *name, enum page_kind kind, struct sweep_estimate e)
{
	if (!isfinite(e.est))
		return;
	fprintf(f, "<div><dt>%s</dt><dd>", name);
	page_figure(f, kind, e.est);
	fputs(" ", f);
	page_interval(f, kind, e);
	fputs("</dd></div>\n", f);
}

static void facts(const struct sweep_page *p, const struct sweep_target *t)
{
	FILE *f = p->f;

	fputs("<dl class=\"facts\">\n", f);
	fact(f, "blocks", PAGE_COUNT, (double)t->blocks);
	fact(f, "p of no effect", PAGE_P, t->p_random);
	fact(f, "p of the verdict, corrected", PAGE_P, t->p_adjusted);
	fact(f, "kappa that would have been seen", PAGE_KAPPA, t->mde);
	fact_interval(f, "kappa, robust against outliers", PAGE_KAPPA, t->kappa_robust);
	if (t->slack_kind == SLACK_FOUND) {
		fact_interval(f, "slack", PAGE_TIME, t->slack_ns);
		fact_interval(f, "kappa beyond the slack", PAGE_KAPPA, t->kappa_beyond);
		if (isfinite(t->last_delay_ns))
			fact(f, "delay of a call in the last blocks", PAGE_TIME, t->last_delay_ns);
	}
	if (t->lanes_unclear) {
		fact_interval(f, "kappa with the fewest lanes", PAGE_KAPPA, t->range[0]);
		fact_interval(f, "kappa with the most lanes", PAGE_KAPPA, t->range[1]);
	}
	fact(f, "calls", PAGE_COUNT, (double)t->hits);
	fact(f, *p->unit == 'i' ? "calls an item" : "calls per unit", PAGE_NUMBER,
	     t->hits_per_item);
	if (t->hits_differ)
		fact_interval(f, "change of the calls by the delay", PAGE_SHARE_CHANGE,
			      t->hits_change);
	fact(f, "given of the delay asked", PAGE_SHARE, t->dose_given);
	fputs("</dl>\n", f);
}

static void parts(FILE *f, const struct sweep_target *t)
{
	if (!t->n_parts)
		return;
	fputs("<table><thead><tr><th scope=\"col\">part</th><th scope=\"col\">kappa of it alone"
	      "</th><th scope=\"col\">lanes</th></tr></thead>\n<tbody>\n",
	      f);
	for (size_t i = 0; i < t->n_parts; i++) {
		fputs("<tr><th scope=\"row\">", f);
		page_name(f, t->part[i].name);
		fputs("</th><td>", f);
		page_figure(f, PAGE_KAPPA, t->part[i].kappa.est);
		fputs(" ", f);
		page_interval(f, PAGE_KAPPA, t->part[i].kappa);
		fputs("</td><td>", f);
		page_figure(f, PAGE_NUMBER, round(t->part[i].lanes));
		fputs("</td></tr>\n", f);
	}
	fputs("</tbody></table>\n", f);
}

static void target(const struct sweep_page *p, size_t id, double most)
{
	const struct sweep_target *t = &p->res->target[p->order[id]];
	bool drawn = sweep_page_has_doses(t);

	fputs("<article>\n<h3>", p->f);
	page_name(p->f, t->spec);
	fputs(" ", p->f);
	sweep_page_verdict(p, t);
	fputs("</h3>\n", p->f);
	reasons(p, t);
	fputs("<div class=\"pictures\">\n", p->f);
	if (drawn)
		sweep_page_picture(p, t, id);
	fputs("<div class=\"beside\">\n", p->f);
	if (drawn)
		sweep_page_doses(p, t);
	sweep_page_quantiles(p, t);
	out_sweep_stack(p->f, t, p->about, most, id);
	parts(p->f, t);
	facts(p, t);
	fputs("</div>\n</div>\n", p->f);
	fputs("</article>\n", p->f);
}

static void targets(struct sweep_page *p)
{
	double most = out_sweep_stack_most(p->res, p->about, p->n);
	bool any = false;

	if (!p->n)
		return;
	sweep_page_scale(p);
	fputs("<section>\n<h2>Each function</h2>\n", p->f);
	for (size_t i = 0; i < p->n; i++)
		any |= sweep_page_has_doses(&p->res->target[i]);
	if (any) {
		fprintf(p->f,
			"<p>How much longer each %s took, against the time that was injected into "
			"it. All pictures have the same axes, which begin at zero.</p>\n",
			p->unit);
		sweep_page_legend(p);
	}
	for (size_t i = 0; i < p->n; i++)
		target(p, i, most);
	fputs("</section>\n", p->f);
}

static void origin_machine(FILE *f, const struct out_sweep_about *about)
{
	struct out_host host;
	char when[64];

	out_host(&host);
	fputs("<div><dt>machine</dt><dd class=\"outside\">", f);
	page_text(f, host.name);
	fputs(", ", f);
	page_text(f, host.cpu[0] ? host.cpu : host.kernel.machine);
	fputs("</dd></div>\n", f);
	fact(f, "processors", PAGE_COUNT, (double)host.cpus);
	fputs("<div><dt>kernel</dt><dd class=\"outside\">Linux ", f);
	page_text(f, host.kernel.release);
	fputs("</dd></div>\n", f);
	if (about->ended)
		fprintf(f, "<div><dt>ended</dt><dd class=\"outside\">%s</dd></div>\n",
			out_when(about->ended, when, sizeof(when)));
}

void sweep_page_origin(const struct sweep_page *p)
{
	FILE *f = p->f;

	fputs("<section>\n<h2>Where this is from</h2>\n<p class=\"command\"><code "
	      "class=\"outside\">sbinject",
	      f);
	for (int i = 0; i < p->about->argc; i++) {
		fputc(' ', f);
		page_text(f, p->about->argv[i]);
	}
	fputs("</code></p>\n<dl class=\"facts\">\n", f);
	fprintf(f, "<div><dt>sbinject</dt><dd class=\"outside\">%s</dd></div>\n", SB_VERSION);
	origin_machine(f, p->about);
	if (p->about->progress) {
		fprintf(f, "<div><dt>%ss counted by</dt><dd class=\"outside\">",
			p->about->response ? "item" : p->unit);
		page_text(f, p->about->progress);
		fputs("</dd></div>\n", f);
	}
	if (p->about->response) {
		fputs("<div><dt>responses timed by</dt><dd class=\"outside\">", f);
		page_text(f, p->about->response);
		fputs("</dd></div>\n", f);
	}
	fact(f, "threshold of kappa", PAGE_NUMBER, p->res->threshold);
	fact(f, "seed", PAGE_COUNT, (double)p->res->seed);
	fputs("</dl>\n</section>\n", f);
}

static void page(struct sweep_page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'\"/>\n<title>What limits the program: a sweep</title>\n",
	      p->f);
	sweep_page_style(p->f);
	fputs("</head>\n<body>\n<main>\n", p->f);
	answer(p);
	sweep_page_table(p);
	targets(p);
	sweep_page_trust(p);
	sweep_page_origin(p);
	fputs("</main>\n</body>\n</html>\n", p->f);
}

int out_sweep_html(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err)
{
	struct sweep_page p = { .res = res, .about = about, .n = out_sweep_shown(res, about) };

	p.f = out_place_stream(path);
	if (!p.f)
		return err_sys(err, SB_EFILE, "cannot write %s", path);
	p.unit = out_sweep_unit(res, about);
	p.order = out_sweep_by_gain(res, p.n);
	page(&p);
	free(p.order);
	return fclose(p.f) ? err_sys(err, SB_EFILE, "cannot write %s", path) : 0;
}
