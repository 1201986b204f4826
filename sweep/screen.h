/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_SCREEN_H
#define SWEEP_SCREEN_H

#include "result.h"
#include "rng.h"

/*
 * Many targets, few that matter: selects those worth a sweep of their own.
 *
 * Group testing (Dorfman 1943) by halving. A group is delayed as one, each member by the same
 * injected time per item (so its delay is in proportion to 1/hits), X together. If k is the group's
 * slope dT/dX, the members' kappas sum to m * k for m members. A group whose m * k is below the
 * threshold by its interval's end is finished: none of its members reaches the threshold, provided
 * that no delay makes the program faster. Any other is halved; groups with the largest response are
 * first. A group of one is a survivor, and is measured alone.
 *
 * When the time for screening is over, members of groups still open are survivors too, in that
 * order; targets that cannot be measured in the time left are reported as such.
 */
enum screen_state { SCREEN_OPEN, SCREEN_HIDDEN, SCREEN_SURVIVOR };

struct screen_group {
	size_t from, n; /* of screen.member */
	double felt;	/* slope of the group it was split from; INFINITY at first */
};

struct screen {
	double threshold;
	size_t n;
	size_t *member;		   /* the targets' numbers, shuffled */
	enum screen_state *state;  /* one per member */
	double *bound;		   /* upper end of a hidden member's kappa */
	double *felt;		   /* of a survivor: slope of its last group */
	struct screen_group *open; /* those with the largest response last */
	size_t n_open, found;
};

void screen_open(struct screen *screen, const size_t *target, size_t n, double threshold,
		 struct rng *rng);
void screen_close(struct screen *screen);

/* The group to delay now: its members' targets. 0: over. */
size_t screen_next(const struct screen *screen, const size_t **target);

/* Its slope dT/dX. An unknown one counts as felt. */
void screen_tell(struct screen *screen, const struct sweep_estimate *slope);

/* No more time: targets that are still open survive. */
void screen_stop(struct screen *screen);

/* About how many groups would be tested if one target in this many mattered. */
size_t screen_tests(size_t n);

/* Survivors' targets, those with the largest response first; target must hold n. */
size_t screen_survivors(const struct screen *screen, size_t *target);

#endif
