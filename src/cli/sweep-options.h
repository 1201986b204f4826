/* SPDX-License-Identifier: MIT */
#ifndef SB_SWEEP_OPTIONS_H
#define SB_SWEEP_OPTIONS_H

#include <stdio.h>
#include "evidence/evidence.h"
#include "options.h"
#include "sweep/drive.h"

/* The options of `sweep` alone; options.h has the others. */
struct sweep_options {
	char *progress, *response, *csv, *html, *plot, *events;
	uint64_t *dose_ns;
	size_t n_doses;
	double quantile; /* 0: the mean */
	char *adjust[SWEEP_ADJUST];
	size_t n_adjust;
	uint64_t time_ns, guard_ns;
	unsigned int runs; /* 0: live */
	double threshold;  /* 0: the default */
	uint64_t seed;
	bool seed_given, self_check;
	enum lane_mode lane;
	bool evidence, no_evidence; /* asked for, declined */
	unsigned int groups;	    /* named, as evidence_groups_read(); 0: all */
};

/*
 * Removes these options from argv, which keeps the rest, and adjusts argc. Leaves what is behind
 * `--` alone. SB_EUSAGE with the option and the remedy.
 */
int sweep_options_take(int *argc, char **argv, struct sweep_options *out, struct sb_err *err);
void sweep_options_free(struct sweep_options *opt);
void sweep_options_help(FILE *to);

#endif
