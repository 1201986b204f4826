/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_COMPARE_H
#define SWEEP_COMPARE_H

#include "result.h"

/*
 * Compares two sweeps, before and after a change of code.
 *
 * Targets are matched by their spec. Intervals of a difference B - A are computed from the two
 * intervals by MOVER (Zou and Donner 2008), which needs only the intervals and keeps their
 * asymmetry:
 *
 *	lo = (b - a) - sqrt((b - lo_b)^2 + (hi_a - a)^2)
 *	hi = (b - a) + sqrt((hi_b - b)^2 + (a - lo_a)^2)
 *
 * A difference *changed* when 0 is outside at 95 % after Holm's correction over the targets
 * compared, kappas and slacks each a family. Unknown stays unknown (NAN). A slack of which only a
 * lower bound, the largest dose, is known differs from one found below that dose, by at least the
 * distance between them.
 */
enum compare_state { COMPARE_SAME, COMPARE_CHANGED, COMPARE_UNKNOWN, COMPARE_STATES };

struct compare_row {
	const char *spec;		  /* borrowed from a, else from b */
	const struct sweep_target *a, *b; /* NULL: only in the other */
	struct sweep_estimate kappa;	  /* b - a */
	enum compare_state kappa_state;
	double kappa_p; /* Holm-adjusted */
	struct sweep_estimate slack_ns;
	enum compare_state slack_state;
	double slack_p;
	struct sweep_estimate t0_ratio; /* T0 of b over T0 of a - 1; intervals unknown */
	bool verdict_changed;
};

struct compare {
	struct compare_row *row; /* in a's order, then those that only b has */
	size_t n_rows;
	size_t changed; /* rows with a changed kappa or slack */
};

/* Borrows from both, which must live as long. compare_free() frees the rows. */
void compare_results(const struct sweep_result *a, const struct sweep_result *b,
		     struct compare *out);
void compare_free(struct compare *cmp);

#endif
