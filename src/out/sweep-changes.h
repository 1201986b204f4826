/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_SWEEP_CHANGES_H
#define SB_OUT_SWEEP_CHANGES_H

#include <jansson.h>
#include "sweep.h"

/* The evidence of a sweep, as the writers of its formats share it. n: targets to show. */
const char *out_sweep_side(enum sweep_side side); /* "delayed", "others" */

/* Lines below the table: why, what changed (if it was asked for), and where it is from. */
void out_sweep_changes(FILE *to, const struct sweep_result *res,
		       const struct out_sweep_about *about, size_t n);

/* The members "evidence" of the document, of a target and of a window. */
json_t *out_sweep_evidence_json(const struct sweep_result *res,
				const struct out_sweep_about *about);
json_t *out_sweep_changes_json(const struct sweep_result *res, const struct sweep_target *target,
			       const struct out_sweep_about *about);
json_t *out_sweep_counters_json(const struct sweep_result *res, const struct sweep_window *win);

/* The page's picture: the time of an item in SHAM and at the largest dose, by what the delayed
 * threads do in it; nothing where that is not known. All have one scale, up to `most`; id: of the
 * picture in the page. */
double out_sweep_stack_most(const struct sweep_result *res, const struct out_sweep_about *about,
			    size_t n);
void out_sweep_stack(FILE *to, const struct sweep_target *t, const struct out_sweep_about *about,
		     double most, size_t id);

#endif
