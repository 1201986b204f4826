/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "markup.h"
#include "out.h"
#include "src/base/text.h"

/* No document may hold these two, which are no characters, even where they are valid UTF-8. */
static void put_markup(FILE *f, char *shown)
{
	for (char *s = shown; *s; s++)
		if (!strncmp(s, "\xef\xbf\xbe", 3) || !strncmp(s, "\xef\xbf\xbf", 3))
			s[2] = (char)0xbd; /* the replacement character */
	out_markup(f, shown);
}

void page_text(FILE *f, const char *text)
{
	char *shown = text_show(text);

	put_markup(f, shown);
	free(shown);
}

static void put_span(FILE *f, const char *of, const char *text)
{
	fprintf(f, "<span class=\"%s\">", of);
	page_text(f, text);
	fputs("</span>", f);
}

void page_said(FILE *f, const char *text)
{
	put_span(f, "said", text);
}

void page_name(FILE *f, const char *name)
{
	put_span(f, "name", name);
}

static void put_time(FILE *f, double ns, bool sign)
{
	char text[32];

	fprintf(f, "%s%s",
		ns < 0	       ? "-" :
		ns > 0 && sign ? "+" :
				 "",
		out_time(fabs(ns), text, sizeof(text)));
}

static void put_share(FILE *f, double share, bool sign)
{
	double v = 100 * share;
	int digits = fabs(v) < 10 ? 2 : fabs(v) < 99.95 ? 1 : 0;

	fprintf(f, sign ? "%+.*f %%" : "%.*f %%", digits, v);
}

static void put_p(FILE *f, double p)
{
	if (p < 0.001)
		fputs("&lt;0.001", f);
	else
		fprintf(f, "%.3f", p);
}

void page_figure(FILE *f, enum page_kind kind, double v)
{
	if (!isfinite(v)) {
		fputs(isnan(v) ? "–" : "no bound", f);
		return;
	}
	fprintf(f, "<data value=\"%.17g\">", v);
	switch (kind) {
	case PAGE_COUNT:
		fprintf(f, "%.0f", v);
		break;
	case PAGE_KAPPA:
		fprintf(f, "%.2f", v);
		break;
	case PAGE_NUMBER:
		fprintf(f, "%.4g", v);
		break;
	case PAGE_SECONDS:
		fprintf(f, "%.1f s", v);
		break;
	case PAGE_P:
		put_p(f, v);
		break;
	case PAGE_SHARE:
	case PAGE_SHARE_CHANGE:
		put_share(f, v, kind == PAGE_SHARE_CHANGE);
		break;
	default:
		put_time(f, v, kind == PAGE_TIME_CHANGE);
	}
	fputs("</data>", f);
}

void page_interval(FILE *f, enum page_kind kind, struct sweep_estimate e)
{
	if (isnan(e.lo) || isnan(e.hi)) {
		fputs("<span class=\"ci\">no interval</span>", f);
		return;
	}
	fputs("<span class=\"ci\">[", f);
	page_figure(f, kind, e.lo);
	fputs(", ", f);
	page_figure(f, kind, e.hi);
	fputs("]</span>", f);
}

double page_step(double most, int marks)
{
	double unit = pow(10, floor(log10(most / marks)));

	for (int i = 0; i < 3; i++) {
		static const double of[] = { 1, 2, 5 };

		if (unit * of[i] * marks >= most * (1 - 1e-9))
			return unit * of[i];
	}
	return 10 * unit;
}

char *page_tick(double ns, char *buf, size_t size)
{
	static const struct {
		double from;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 0, "ns" } };
	int i = 0;

	while (units[i].from > 0 && ns < units[i].from * (1 - 1e-9))
		i++;
	if (ns > 0)
		snprintf(buf, size, "%.4g%s", ns / (units[i].from > 0 ? units[i].from : 1),
			 units[i].unit);
	else
		snprintf(buf, size, "0");
	return buf;
}
