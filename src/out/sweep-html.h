/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_HTML_H
#define SB_OUT_SWEEP_HTML_H

#include "sweep.h"

/*
 * The parts of the page. All pictures of one kind share their axes, which begin at zero, so that
 * targets can be compared by eye; what lies outside has an arrow at the edge, and its figures stand
 * beside it. A picture without a point is left out.
 */
struct sweep_page {
	FILE *f;
	const struct sweep_result *res;
	const struct out_sweep_about *about;
	size_t *order, n;      /* the targets in their order */
	const char *unit;      /* "item" */
	double x_most, y_most; /* of the pictures of doses, ns */
	double y_least;	       /* room below zero, for points that lie there; 0 or less */
};

void sweep_page_style(FILE *f);
void sweep_page_table(const struct sweep_page *p);
void sweep_page_scale(struct sweep_page *p); /* fills x_most, y_most, y_least */
void sweep_page_legend(const struct sweep_page *p);
bool sweep_page_has_doses(const struct sweep_target *t);
void sweep_page_picture(const struct sweep_page *p, const struct sweep_target *t, size_t id);
void sweep_page_doses(const struct sweep_page *p, const struct sweep_target *t); /* as a table */
void sweep_page_quantiles(const struct sweep_page *p, const struct sweep_target *t);
void sweep_page_course(const struct sweep_page *p); /* the windows over time */
void sweep_page_trust(const struct sweep_page *p);  /* how sure */
void sweep_page_origin(const struct sweep_page *p); /* command, machine, version, date */

/* The mark of a verdict, and what it means in words. */
void sweep_page_verdict(const struct sweep_page *p, const struct sweep_target *t);
const char *sweep_page_meaning(const struct sweep_page *p, const struct sweep_target *t);

#endif
