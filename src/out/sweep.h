/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_H
#define SB_OUT_SWEEP_H

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include "src/base/err.h"
#include "src/result/sides.h"
#include "sweep/compare.h"
#include "sweep/result.h"

/* Writers of a sweep's result, one a format. They read only the plain struct. */
struct out_sweep_about { /* facts that the result itself does not hold */
	int argc;
	char **argv;
	const char *progress, *response;  /* response NULL: time per item */
	double quantile;		  /* that was judged; 0: the mean */
	const char *adjust[SWEEP_ADJUST]; /* as given; NULL: not */
	size_t n_targets;		  /* to show; a control that is not a target follows them */
	const struct sides_about *sides;  /* of the evidence; NULL: none */
	time_t ended;			  /* 0: not known */
	double busy, steal; /* shares of the machine's processors in that time; NAN: not known */
};

/* The table and the line of gates, for a reader at a terminal. */
void out_sweep_table(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about);

/* Schema "sbinject.sweep/1" (sbinject-sweep.json in sbinject(1)); path "-": stdout. */
int out_sweep_json(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err);
/* Reads a document back, for compare; windows are left out. */
int out_sweep_read(const char *path, struct sweep_result **res, struct sb_err *err);

/* One line for each window. */
int out_sweep_csv(const char *path, const struct sweep_result *res,
		  const struct out_sweep_about *about, struct sb_err *err);

/* By gnuplot; the suffix of the path selects the format. */
bool out_sweep_can_plot(void);
int out_sweep_plot(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err);

/* One self-contained page, for a reader without the output of the terminal. */
int out_sweep_html(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err);

void out_compare_table(FILE *to, const struct compare *cmp);

#endif
