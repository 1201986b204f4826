/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_PLOT_H
#define SB_OUT_SWEEP_PLOT_H

#include "sweep.h"

/*
 * Shared by the writers that draw. n: targets to show. path: NULL for the standard output.
 * out_sweep_gnuplot(): by gnuplot without the rights of sbinject, into an open file; path is shown.
 */
void out_sweep_script(FILE *f, const char *terminal, const char *path,
		      const struct sweep_result *res, size_t n);
int out_sweep_gnuplot(const char *terminal, int picture, const char *path,
		      const struct sweep_result *res, size_t n, struct sb_err *err);

#endif
