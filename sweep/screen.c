/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <stdlib.h>
#include "src/base/must.h"

static void settle(struct screen *s, const struct screen_group *group, enum screen_state state,
		   double figure)
{
	for (size_t i = group->from; i < group->from + group->n; i++) {
		s->state[i] = state;
		*(state == SCREEN_HIDDEN ? &s->bound[i] : &s->felt[i]) = figure;
	}
}

/* Kept in rising order of their response. */
static void push(struct screen *s, struct screen_group group)
{
	size_t at = s->n_open++;

	while (at > 0 && s->open[at - 1].felt > group.felt) {
		s->open[at] = s->open[at - 1];
		at--;
	}
	s->open[at] = group;
}

/* A single target needs no test here: it gets a sweep of its own. */
static void halve(struct screen *s, const struct screen_group *group, double felt)
{
	size_t half = group->n / 2;
	struct screen_group part[2] = { { group->from, half, felt },
					{ group->from + half, group->n - half, felt } };

	for (int i = 0; i < 2; i++) {
		if (part[i].n == 1)
			settle(s, &part[i], SCREEN_SURVIVOR, felt);
		else if (part[i].n > 1)
			push(s, part[i]);
	}
}

void screen_open(struct screen *s, const size_t *target, size_t n, double threshold,
		 struct rng *rng)
{
	int *order = must_calloc(n, sizeof(*order));
	struct screen_group all = { 0, n, INFINITY };

	*s = (struct screen){ .threshold = threshold, .n = n };
	s->member = must_calloc(n, sizeof(*s->member));
	s->state = must_calloc(n, sizeof(*s->state));
	s->bound = must_calloc(n, sizeof(*s->bound));
	s->felt = must_calloc(n, sizeof(*s->felt));
	s->open = must_calloc(n + 2, sizeof(*s->open));
	for (size_t i = 0; i < n; i++)
		order[i] = (int)i;
	rng_shuffle(rng, order, n);
	for (size_t i = 0; i < n; i++)
		s->member[i] = target[order[i]];
	free(order);
	halve(s, &all, INFINITY); /* all at once would nearly always show a response */
}

void screen_close(struct screen *s)
{
	free(s->member);
	free(s->state);
	free(s->bound);
	free(s->felt);
	free(s->open);
	*s = (struct screen){ 0 };
}

size_t screen_next(const struct screen *s, const size_t **target)
{
	const struct screen_group *group;

	if (!s->n_open)
		return 0;
	group = &s->open[s->n_open - 1];
	*target = &s->member[group->from];
	return group->n;
}

void screen_tell(struct screen *s, const struct sweep_estimate *slope)
{
	struct screen_group group;
	double bound;

	if (!s->n_open)
		return;
	group = s->open[--s->n_open];
	s->found++;
	bound = (double)group.n * slope->hi;
	if (bound < s->threshold)
		settle(s, &group, SCREEN_HIDDEN, bound);
	else
		halve(s, &group, isnan(slope->est) ? INFINITY : (double)group.n * slope->est);
}

void screen_stop(struct screen *s)
{
	while (s->n_open) {
		struct screen_group group = s->open[--s->n_open];

		settle(s, &group, SCREEN_SURVIVOR, group.felt);
	}
}

size_t screen_tests(size_t n)
{
	size_t levels = 0;

	while (n > ((size_t)1 << levels))
		levels++;
	return 2 + 3 * levels;
}

size_t screen_survivors(const struct screen *s, size_t *target)
{
	size_t n = 0;
	double *felt = must_calloc(s->n, sizeof(*felt));

	for (size_t i = 0; i < s->n; i++) {
		size_t at;

		if (s->state[i] != SCREEN_SURVIVOR)
			continue;
		for (at = n++; at > 0 && felt[at - 1] < s->felt[i]; at--) {
			felt[at] = felt[at - 1];
			target[at] = target[at - 1];
		}
		felt[at] = s->felt[i];
		target[at] = s->member[i];
	}
	free(felt);
	return n;
}
