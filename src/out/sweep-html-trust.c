/* SPDX-License-Identifier: MIT */
/* The page's account of how sure it is: the checks, and what each of them would have shown. */
#include <math.h>
#include "page.h"
#include "sweep-html.h"
#include "sweep-words.h"

/* Opens the row of a check; its result and its meaning follow in two cells. */
static void check(FILE *f, const char *name)
{
	fprintf(f,
		"<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">%s</th><td role=\"cell\">",
		name);
}

static void means(FILE *f, const char *text)
{
	fprintf(f, "</td><td role=\"cell\">%s", text);
}

static void end(FILE *f)
{
	fputs("</td></tr>\n", f);
}

static void equal_arms(FILE *f, const struct sweep_gates *g)
{
	check(f, "A/A: equal windows");
	if (!g->aa_known) {
		fputs("not run", f);
		means(f, "Windows that were alike were not compared: there was no time for it.");
	} else {
		page_figure(f, PAGE_SHARE_CHANGE, g->aa.est);
		fputs(" ", f);
		page_interval(f, PAGE_SHARE_CHANGE, g->aa);
		means(f, g->unproven ?
				 "<strong>Windows that were alike differed: nothing here is "
				 "proven.</strong>" :
				 "Windows that were alike did not differ by more than chance. An "
				 "effect must be larger than this interval to count.");
	}
	end(f);
}

static void after_effect(FILE *f, const struct sweep_gates *g)
{
	check(f, "carry-over");
	if (isnan(g->carry_t)) {
		fputs("not tested", f);
		means(f, "Whether a delay is still felt after its window is not known.");
	} else {
		fputs("t ", f);
		page_figure(f, PAGE_KAPPA, g->carry_t);
		means(f, g->carry_over ?
				 "<strong>A delay is still felt in the window after it: kappa is "
				 "too low.</strong>" :
				 "A delay was not seen to be felt in the window after it.");
	}
	end(f);
}

static void own_cost(FILE *f, const struct sweep_page *p)
{
	const struct sweep_gates *g = &p->res->gates;

	check(f, "cost of the tool");
	page_figure(f, PAGE_TIME_CHANGE, g->sham_ns.est);
	if (isfinite(g->sham_ns.est)) {
		fputs(" ", f);
		page_interval(f, PAGE_TIME_CHANGE, g->sham_ns);
		fprintf(f, " per %s", p->unit);
	}
	means(f,
	      "Hooked without a delay, against not hooked. It is in all windows that are compared, "
	      "and so in no kappa.");
	end(f);
}

static void control(FILE *f, const struct sweep_gates *g)
{
	if (!g->control_asked)
		return;
	check(f, "self-check");
	fputs("kappa ", f);
	page_figure(f, PAGE_KAPPA, g->control.est);
	fputs(" ", f);
	page_interval(f, PAGE_KAPPA, g->control);
	means(f,
	      g->control_ok ?
		      "A delay of the progress function itself was felt in full, as it must be." :
		      "<strong>A delay of the progress function itself was not felt in full: "
		      "nothing here has a meaning.</strong>");
	end(f);
}

static void load(FILE *f, const struct sweep_gates *g)
{
	static const char *const says[LOAD_COUNT] = {
		[LOAD_UNKNOWN] = "Whether requests come at a rate of their own is not known.",
		[LOAD_CLOSED] = "The program takes the next work when it is done with the last.",
		[LOAD_OPEN] =
			"<strong>Requests come at a rate of their own: what is completed shows "
			"nothing of a delay.</strong>",
	};

	check(f, "load");
	fputs(sweep_load_name(g->load), f);
	means(f, says[g->load]);
	if (g->load_reason[0]) {
		fputs(" ", f);
		page_said(f, g->load_reason);
	}
	end(f);
}

static void lanes(FILE *f, const struct sweep_gates *g)
{
	check(f, "side by side");
	page_figure(f, PAGE_COUNT, round(g->lanes));
	fputs(round(g->lanes) == 1 ? " lane" : " lanes", f);
	means(f, "So many threads or processes are delayed side by side; what is injected is "
		 "divided by "
		 "it.");
	end(f);
}

/* A row for each covariate: what was taken out of all times, or why it was not. */
static void adjusted(FILE *f, const struct sweep_page *p)
{
	for (size_t i = 0; i < p->res->n_adjust; i++) {
		const struct sweep_adjust *a = &p->res->adjust[i];

		check(f, a->used ? "adjusted for" : "not adjusted for");
		page_said(f, p->about->adjust[i] ? p->about->adjust[i] : "");
		if (a->used) {
			means(f, "What comes of this count is taken out of all times, as no delay "
				 "was seen to change it. Of the variance within blocks all of "
				 "these explain ");
			page_figure(f, PAGE_SHARE, p->res->adjust_explained);
			fputs(".", f);
		} else {
			means(f, "");
			page_said(f, a->reason);
		}
		end(f);
	}
}

static void machine(FILE *f, const struct out_sweep_about *about)
{
	check(f, "machine");
	if (isnan(about->busy)) {
		fputs("not known", f);
		means(f, "What else ran on the machine is not known.");
	} else {
		page_figure(f, PAGE_SHARE, about->busy);
		fputs(" busy, ", f);
		page_figure(f, PAGE_SHARE, about->steal);
		fputs(" stolen", f);
		means(f,
		      "Of all processors, the program's own work included; stolen by the host of a "
		      "virtual machine. The more, the wider the intervals.");
		if (out_sweep_crowded(about))
			fprintf(f, " Here %s.", out_sweep_crowded(about));
	}
	end(f);
}

static void spent(FILE *f, const struct sweep_page *p)
{
	check(f, "time spent");
	page_figure(f, PAGE_SECONDS, p->res->time_s);
	means(f, p->res->ended_early ? "The sweep ended early: it has fewer blocks than planned." :
				       "The sweep ended as planned.");
	if (isfinite(p->res->time_needed_s)) {
		fputs(" For all that was asked, ", f);
		page_figure(f, PAGE_SECONDS, p->res->time_needed_s);
		fputs(" would be enough.", f);
	}
	end(f);
}

static void warnings(const struct sweep_page *p)
{
	if (!p->res->n_warnings)
		return;
	fputs("<ul class=\"warnings\">\n", p->f);
	for (size_t i = 0; i < p->res->n_warnings; i++) {
		fputs("<li>", p->f);
		page_said(p->f, p->res->warning[i]);
		fputs("</li>\n", p->f);
	}
	fputs("</ul>\n", p->f);
}

void sweep_page_trust(const struct sweep_page *p)
{
	FILE *f = p->f;

	fputs("<section>\n<h2>How sure</h2>\n", f);
	warnings(p);
	fputs("<table role=\"table\" class=\"wide checks\"><thead role=\"rowgroup\"><tr "
	      "role=\"row\">"
	      "<th role=\"columnheader\" scope=\"col\">check</th><th role=\"columnheader\" "
	      "scope=\"col\">result</th><th role=\"columnheader\" scope=\"col\">what it says</th>"
	      "</tr></thead>\n<tbody role=\"rowgroup\">\n",
	      f);
	equal_arms(f, &p->res->gates);
	after_effect(f, &p->res->gates);
	control(f, &p->res->gates);
	load(f, &p->res->gates);
	lanes(f, &p->res->gates);
	own_cost(f, p);
	adjusted(f, p);
	machine(f, p->about);
	spent(f, p);
	fputs("</tbody></table>\n", f);
	sweep_page_course(p);
	fputs("</section>\n", f);
}
