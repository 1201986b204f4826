/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_SCREEN_H
#define SWEEP_SCREEN_H

#include "result.h"
#include "rng.h"

/*
 * Many targets, few that matter: which are worth a sweep of their own?
 *
 * Group testing (Dorfman 1943) by halving. A group is delayed as one, each member by the same
 * injected time per item (so its delay is in proportion to 1/hits), X together. If k is the
 * group's slope dT/dX, the members' kappas sum to m * k for m members. A group whose m * k is
 * below the threshold by its interval's end is done with: none of its members reaches the
 * threshold, provided that no delay makes the program faster. Any other is halved; groups that
 * felt most go first. A group of one is a survivor, and is measured alone.
 *
 * When the time for it is over, members of groups still open are survivors too, in that order; who
 * cannot be measured in the time left is reported as such.
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
	enum screen_state *state;  /* one a member */
	double *bound;		   /* upper end of a hidden member's kappa */
	double *felt;		   /* of a survivor: slope of its last group */
	struct screen_group *open; /* those that felt most last */
	size_t n_open, told;
};

void screen_open(struct screen *screen, const size_t *target, size_t n, double threshold,
		 struct rng *rng);
void screen_close(struct screen *screen);

/* The group to delay now: its members' targets. 0: over. */
size_t screen_next(const struct screen *screen, const size_t **target);

/* Its slope dT/dX. An unknown one counts as felt. */
void screen_tell(struct screen *screen, const struct sweep_estimate *slope);

/* No more time: who is still open survives. */
void screen_stop(struct screen *screen);

/* About how many groups would be tested if one in so many members mattered. */
size_t screen_tests(size_t n);

/* Survivors' targets, those that felt most first; room for n. */
size_t screen_survivors(const struct screen *screen, size_t *target);

#endif
