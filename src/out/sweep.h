/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_H
#define SB_OUT_SWEEP_H

#include <stdbool.h>
#include <stdio.h>
#include "src/base/err.h"
#include "sweep/compare.h"
#include "sweep/result.h"

/* Writers of a sweep's result, one a format; they read the plain struct and nothing else. */
struct out_sweep_about { /* what the result itself does not say */
	int argc;
	char **argv;
	const char *progress, *response; /* response NULL: time per item */
	size_t n_targets;		 /* to be shown; a control that is no target follows them */
};

/* The table and the line of gates, for people. */
void out_sweep_table(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about);

/* Schema "sbinject.sweep/1" (sbinject-sweep.json in sbinject(1)); path "-": stdout. */
int out_sweep_json(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err);
/* Reads one back, for compare; windows are left out. */
int out_sweep_read(const char *path, struct sweep_result **res, struct sb_err *err);

/* A line a window. */
int out_sweep_csv(const char *path, const struct sweep_result *res,
		  const struct out_sweep_about *about, struct sb_err *err);

/* By gnuplot; the format is that of the name. */
bool out_sweep_can_plot(void);
int out_sweep_plot(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err);

/* One file that needs nothing else; pictures where gnuplot is there. */
int out_sweep_html(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err);

void out_compare_table(FILE *to, const struct compare *cmp);

#endif
