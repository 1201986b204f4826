/* SPDX-License-Identifier: MIT */
#include "place.h"

enum { ROOTS_MAX = 512 /* of a lane: 24 KiB */ };

static unsigned int choose(struct place_lanes *lanes, uint64_t start, size_t *first)
{
	for (unsigned int i = 0; i < lanes->n; i++) {
		enum nest_fit fit = nest_fit(&lanes->lane[i], start, first);

		if (fit == NEST_GUESSED)
			nest_part(&lanes->lane[i], *first, start);
		if (fit != NEST_CROSSES)
			return i;
	}
	*first = 0;
	return lanes->n;
}

/* The last lane has a call that it crosses, too: what is shown begins where all in there end. */
static void cut(struct place_lanes *lanes, struct place *place, size_t *first)
{
	const struct nest *lane = &lanes->lane[PLACE_LANES - 1];

	place->lane = PLACE_LANES - 1;
	*first = lane->n;
	place->start = lane->root[lane->n - 1].end;
	if (place->end < place->start)
		place->end = place->start;
}

static void settle(const struct nest *lane, struct place *place, size_t first)
{
	const struct nest_root *root = lane->root;

	if (first == lane->n)
		return;
	if (root[lane->n - 1].end > place->end)
		place->end = root[lane->n - 1].end;
	if (root[first].start == place->start && place->start &&
	    (!first || root[first - 1].end < place->start))
		place->start--;
}

void place_span(struct place_lanes *lanes, uint64_t start, uint64_t end, struct place *place)
{
	struct nest_root root = { .n = 1 };
	size_t first;

	*place = (struct place){ .start = start, .end = end };
	place->lane = choose(lanes, start, &first);
	if (place->lane == PLACE_LANES)
		cut(lanes, place, &first);
	else if (place->lane == lanes->n)
		lanes->n++;
	settle(&lanes->lane[place->lane], place, first);
	place->moved = place->start != start || place->end != end;
	root.start = place->start;
	root.end = place->end;
	nest_put(&lanes->lane[place->lane], first, &root);
	nest_bound(&lanes->lane[place->lane], ROOTS_MAX, NULL, NULL);
}

void place_free(struct place_lanes *lanes)
{
	for (unsigned int i = 0; i < lanes->n; i++)
		nest_free(&lanes->lane[i]);
	lanes->n = 0;
}
