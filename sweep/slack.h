/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_SLACK_H
#define SWEEP_SLACK_H

#include "infer.h"

/*
 * The slack: how much delay has no effect.
 *
 *	T_b(x) = T0_b + kappa' * max(0, x - s)
 *
 * (a hinge, "broken stick", segmented regression: Hudson 1966), T0_b free in every block, against
 * the straight line s = 0 by AICc (Hurvich and Tsai 1989) over the n = B * (arms - 1) contrasts.
 * The regressor is the arm's mean dose, not the block's (see infer.h for the reason). The interval
 * of s is that of the profile likelihood: all s with RSS(s) <= RSS_min * (1 + F_.95(1, n - 2) / (n
 * - 2)).
 *
 * The hinge is chosen when its AICc is lower by 7 and the interval of s does not contain 0. The
 * verdict is based on the slope at no delay: with a slack, that below it. The slope beyond, kappa',
 * has the interval that the profile over (s, kappa') gives.
 *
 * Two doses above s are needed to separate slope and slack; with fewer the result is only a
 * bracket, and with one dose in all the slack is unknown.
 */
struct slack_fit {
	enum sweep_slack_kind kind;
	struct sweep_estimate slack_ns;
	struct sweep_estimate beyond; /* slope beyond s; unknown unless SLACK_FOUND */
	struct infer_kappa origin; /* SLACK_FOUND, _BRACKET: over the doses below the slack's lower
				    * end, or the smallest; then lo is at most 0. Else the line's */
	double delta_aicc;	   /* line - hinge; NAN: not comparable */
	size_t above;		   /* doses above s */
	size_t below;		   /* the largest dose of `origin`, the first is 1; else 0 */
	bool all_above;		   /* even the smallest dose may lie above the slack */
	const char *why;	   /* static; for SLACK_UNKNOWN and SLACK_BRACKET */
};

/* `origin` from other data: of doses below the slack, with more blocks. */
void slack_origin(const struct infer_data *data, struct rng *rng, struct slack_fit *fit);

/*
 * A queue, of which responses in an open loop are:
 *
 *	T_b(x) = T0_b + kappa x / (1 - x / m)
 *
 * with m, the delay that saturates. Of M/M/1 this is exact. kappa is the slope at no delay, and its
 * interval the hull over all m that the profile allows, the line (no m) among them if it does.
 * False: fewer than two doses do not show it.
 */
struct queue_shape {
	struct sweep_estimate kappa;
	double delta_aicc; /* line - queue */
	double most_ns;	   /* m; INFINITY: a line */
};
bool queue_shape(const struct infer_data *data, struct queue_shape *out);

/* threshold: a kappa below it is no response. line: infer_kappa() of the same data. */
void slack_fit(const struct infer_data *data, const struct infer_kappa *line, double threshold,
	       struct rng *rng, struct slack_fit *out);

#endif
