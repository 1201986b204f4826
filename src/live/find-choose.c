/* SPDX-License-Identifier: MIT */
/* Which function is called once an item? */
#include "find-choose.h"

#include <math.h>
#include <string.h>

#define SCATTER_MOST   0.35
#define WHOLE_WITHIN   0.03 /* of a ratio, from a whole number */
#define SLICES_WITHIN  0.1  /* of a slice's ratio, from that of all */
#define MULTIPLE_LEAST 1.5
#define MULTIPLE_MOST  1000.0
#define HOOK_S	       10e-9 /* of a call that is counted and not delayed, about */
#define TOGETHER_MOST  4.0   /* of larger ratios, most are near a whole number */

enum { CALLS_LEAST = 20 };

double find_hook_cost(double per_s)
{
	return per_s * HOOK_S;
}

static void sum_up(const struct find_rates *rates, struct find_rate *r)
{
	double time = 0, squares = 0;
	bool each = rates->slices >= 3;

	r->calls = 0;
	for (size_t s = 0; s < rates->slices; s++) {
		r->calls += r->hits[s];
		time += rates->slice_s[s];
		each = each && r->hits[s];
	}
	r->per_s = time > 0 ? (double)r->calls / time : NAN;
	for (size_t s = 0; s < rates->slices; s++) {
		double off = (double)r->hits[s] / rates->slice_s[s] / r->per_s - 1;

		squares += off * off;
	}
	r->scatter = r->calls && rates->slices > 1 ? sqrt(squares / (double)(rates->slices - 1)) :
						     NAN;
	r->often = each && r->calls >= CALLS_LEAST;
	r->steady = r->often && r->scatter <= SCATTER_MOST;
	r->multiple_of = FIND_NONE;
}

/* Calls in whole number to each one of `base`, in each slice. */
static bool is_whole(const struct find_rates *rates, const struct find_rate *r,
		     const struct find_rate *base)
{
	double ratio = (double)r->calls / (double)base->calls;
	/* The first and the last reading cut an item in two: off by the calls of one item. */
	double within = fmax(WHOLE_WITHIN, 1 / (double)base->calls);

	if (!(ratio >= 1 - within) || ratio > MULTIPLE_MOST ||
	    fabs(ratio / round(ratio) - 1) > within)
		return false;
	for (size_t s = 0; s < rates->slices; s++) {
		/* A slice cuts a call's work in two: its count is off by one call of the base. */
		double want = ratio * (double)base->hits[s];

		if (fabs((double)r->hits[s] - want) > SLICES_WITHIN * want + ratio)
			return false;
	}
	return true;
}

static bool is_multiple(const struct find_rates *rates, const struct find_rate *r,
			const struct find_rate *base)
{
	return (double)r->calls >= MULTIPLE_LEAST * (double)base->calls && is_whole(rates, r, base);
}

static int base_of(const struct find_rates *rates, size_t i)
{
	for (size_t k = 0; k < rates->n; k++)
		if (k != i && rates->rate[k].steady && !rates->rate[k].waits &&
		    is_multiple(rates, &rates->rate[i], &rates->rate[k]))
			return (int)k;
	return FIND_NONE;
}

/*
 * What any part of a program calls: memory, copies, Go's runtime. It is regular, too, and its calls
 * are no items. No C function has a name with a dot after such a word.
 */
static bool is_common(const char *target)
{
	static const char *const whole[] = { "malloc", "calloc",  "realloc", "free",   "cfree",
					     "memcpy", "memmove", "memset",  "memcmp", "strlen" };
	static const char *const begin[] = { "runtime.",     "internal/",	"sync.", "syscall.",
					     "operator new", "operator delete", "_Znw",	 "_Zna",
					     "_ZdlPv",	     "_ZdaPv" };
	const char *name = strchr(target, ':');

	name = name ? name + 1 : target;
	name += *name == '=';
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (!strcmp(name, whole[i]))
			return true;
	for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return false;
}

/* The larger share; what any part calls, or waits, perhaps for a batch, only if there is nothing
 * else. */
static bool is_better(const struct find_rate *r, const struct find_rate *than)
{
	bool common = is_common(r->target) || r->waits;
	bool other = is_common(than->target) || than->waits;

	return common != other ? other : r->share > than->share;
}

static void choose(struct find_rates *rates)
{
	for (size_t i = 0; i < rates->n; i++) {
		struct find_rate *r = &rates->rate[i];

		/* Also where it scatters a little more than its base does. */
		if (r->often)
			r->multiple_of = base_of(rates, i);
		if (r->steady && r->multiple_of == FIND_NONE &&
		    (rates->point == FIND_NONE || is_better(r, &rates->rate[rates->point])))
			rates->point = (int)i;
	}
}

/* A small number of calls of one to each of the other, in each slice. */
static bool is_together(const struct find_rates *rates, const struct find_rate *a,
			const struct find_rate *b)
{
	const struct find_rate *more = a->calls > b->calls ? a : b, *less = more == a ? b : a;

	return a->often && b->often &&
	       (double)more->calls < (TOGETHER_MOST + 0.5) * (double)less->calls &&
	       is_whole(rates, more, less);
}

/* Where others need the processors the rates of all functions scatter, but not their ratio. */
static void steady_together(struct find_rates *rates)
{
	for (size_t i = 0; i < rates->n; i++)
		for (size_t k = 0; k < rates->n; k++)
			rates->rate[i].steady |= k != i && is_together(rates, &rates->rate[i],
								       &rates->rate[k]);
}

/*
 * By so many steps it has grown: one that grows by the tokens of a request, always as many, has as
 * many steps as there were requests.
 */
static uint64_t steps_of(const struct find_rates *rates, const struct find_rate *r)
{
	uint64_t step = 0;

	for (size_t s = 0; s < rates->slices; s++)
		for (uint64_t a = r->hits[s], rest; a; a = rest) {
			rest = step % a;
			step = a;
		}
	return step ? r->calls / step : 0;
}

/* What the program counts one by one before what it also measures; then the finer one. now: of the
 * counters; FIND_NONE: none yet. */
static bool is_better_counter(const struct find_rates *rates, const struct find_rate *r, int now)
{
	const struct find_rate *than = now == FIND_NONE ? NULL : &rates->counter[now];
	uint64_t steps = steps_of(rates, r), other = than ? steps_of(rates, than) : 0;

	if (!than || r->events != than->events)
		return !than || than->events;
	return steps != other ? steps > other : r->scatter < than->scatter;
}

/* Whose events have times, so that it shows how long responses take. */
static bool is_response(const struct find_rate *r)
{
	static const char end[] = "_seconds";
	size_t len = strlen(r->target), n = sizeof(end) - 1;

	return r->steady && r->events && len >= n && !strcmp(r->target + len - n, end);
}

static void choose_counter(struct find_rates *rates)
{
	rates->counter_point = rates->response_point = FIND_NONE;
	for (size_t i = 0; i < rates->n_counters; i++) {
		struct find_rate *r = &rates->counter[i];

		sum_up(rates, r);
		r->cost = NAN;
		r->often = r->often && steps_of(rates, r) >= CALLS_LEAST;
		r->steady = r->steady && r->often;
		if (r->steady && is_better_counter(rates, r, rates->counter_point))
			rates->counter_point = (int)i;
		if (is_response(r) && is_better_counter(rates, r, rates->response_point))
			rates->response_point = (int)i;
	}
}

void find_choose(struct find_rates *rates)
{
	choose_counter(rates);
	rates->point = FIND_NONE;
	for (size_t i = 0; i < rates->n; i++) {
		if (rates->rate[i].left_out)
			continue;
		sum_up(rates, &rates->rate[i]);
		rates->rate[i].cost = find_hook_cost(rates->rate[i].per_s);
	}
	choose(rates);
	if (rates->point != FIND_NONE)
		return;
	steady_together(rates);
	choose(rates);
}
