/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_PAGE_H
#define SB_OUT_PAGE_H

#include <stdio.h>
#include "sweep/result.h"

/*
 * Parts of a page. A figure is a <data> element whose value is that of the JSON document, so that
 * the page says nothing that the document does not. Text from outside is made safe to show and
 * escaped. What is written is well-formed XML, too.
 */
enum page_kind {
	PAGE_COUNT,	  /* 12 */
	PAGE_KAPPA,	  /* 0.98 */
	PAGE_NUMBER,	  /* three digits */
	PAGE_TIME,	  /* of ns */
	PAGE_TIME_CHANGE, /* with its sign */
	PAGE_SECONDS,
	PAGE_SHARE,	   /* 0.153 is 15.3 % */
	PAGE_SHARE_CHANGE, /* with its sign */
	PAGE_P,		   /* of a test */
};

void page_text(FILE *f, const char *text);
void page_said(FILE *f, const char *text); /* a sentence of the document */
void page_name(FILE *f, const char *name); /* a target's name */

void page_figure(FILE *f, enum page_kind kind, double v); /* not finite: a dash */
void page_interval(FILE *f, enum page_kind kind, struct sweep_estimate e);

/* The distance between the marks of an axis that reaches from 0 to `most`: 1, 2 or 5 times a power
 * of ten, at most `marks` of them. */
double page_step(double most, int marks);
char *page_tick(double ns, char *buf, size_t size); /* "20us", "0" */

#endif
