/* SPDX-License-Identifier: MIT */
/* What the counters say about a verdict, in words. */
#include "sweep-words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "out.h"
#include "src/base/text.h"
#include "sweep-gain.h"

#define SMALL 0.1 /* of the largest: not worth a word */
#define NONE  SIZE_MAX

struct words {
	const struct sweep_result *res;
	const struct sweep_target *target;
	const struct out_sweep_about *about;
	char (*sentence)[OUT_SENTENCE];
	size_t n;
};

const char *out_sweep_doing(size_t counter)
{
	static const char *const doing[SIDES_COUNTERS] = {
		[EVIDENCE_ON_CPU] = "on a processor",
		[EVIDENCE_RUN_QUEUE] = "waiting for a processor",
		[EVIDENCE_FUTEX] = "waiting in futex",
		[EVIDENCE_IO] = "waiting for files or devices",
		[EVIDENCE_NETWORK] = "waiting for the network",
		[EVIDENCE_PAGE_FAULT] = "waiting in page faults",
		[EVIDENCE_SLEEP] = "sleeping",
		[EVIDENCE_OTHER] = "waiting for something else",
		[SIDES_OFF_CPU] = "waiting off the processor",
	};

	return doing[counter];
}

static const struct sweep_change *change_at(const struct words *w, enum sweep_side side, size_t i)
{
	return &w->target->change[(size_t)side * w->res->n_counters + i];
}

/* The change of a time: 0 where it is not significant. */
static double changed(const struct words *w, enum sweep_side side, size_t i)
{
	const struct sweep_change *c = change_at(w, side, i);

	return sides_group(i) == GROUP_TIME && c->significant ? c->delta.est : 0;
}

/* The time, other than `but`, that grew most (sign 1), or shrank most (-1). */
static size_t most(const struct words *w, enum sweep_side side, double sign, size_t but)
{
	size_t best = NONE;
	double ns = 0;

	for (size_t i = 0; i < w->res->n_counters; i++)
		if (i != but && sign * changed(w, side, i) > ns) {
			ns = sign * changed(w, side, i);
			best = i;
		}
	return best;
}

static void __attribute__((format(printf, 2, 3))) say(struct words *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->sentence[w->n++], OUT_SENTENCE, fmt, ap);
	va_end(ap);
}

static double injected(const struct words *w)
{
	return w->target->dose[w->target->n_doses - 1].x_ns;
}

/*
 * What the wait for a time is called; of a futex with its address and the function that waits,
 * where nearly all of the time of these threads is there: then it is that one which became shorter.
 */
#define NEARLY_ALL 0.9

static const char *doing(const struct words *w, size_t counter, char *buf, size_t size)
{
	const struct sides_about *sides = w->about->sides;
	size_t target = (size_t)(w->target - w->res->target), i = 0;
	const struct sides_futex *f;
	char *shown;

	while (sides && i < sides->n_futexes && sides->futex[i].target != target)
		i++;
	if (counter != EVIDENCE_FUTEX || !sides || i == sides->n_futexes)
		return out_sweep_doing(counter);
	f = &sides->futex[i];
	if (f->place_share < NEARLY_ALL || (!f->caller[0] && !f->symbol))
		return out_sweep_doing(counter);
	shown = text_show(f->caller[0] ? f->caller[0] : f->symbol);
	snprintf(buf, size, "%s 0x%llx (%.200s)", out_sweep_doing(counter),
		 (unsigned long long)f->addr, shown);
	free(shown);
	return buf;
}

/* A wait that became shorter by what was injected: that is how a delay hides. */
static bool say_came_out(struct words *w)
{
	size_t first = most(w, SIDE_DELAYED, -1, EVIDENCE_ON_CPU), second = NONE;
	char a[32], b[32], x[32], first_name[320], second_name[320];
	double ns;

	if (first == NONE || injected(w) * SMALL > -changed(w, SIDE_DELAYED, first))
		return false;
	ns = -changed(w, SIDE_DELAYED, first);
	for (size_t i = EVIDENCE_RUN_QUEUE; i < w->res->n_counters; i++)
		if (i != first && -changed(w, SIDE_DELAYED, i) > SMALL * ns &&
		    (second == NONE ||
		     changed(w, SIDE_DELAYED, i) < changed(w, SIDE_DELAYED, second)))
			second = i;
	out_time(ns, a, sizeof(a));
	out_time(injected(w), x, sizeof(x));
	if (second == NONE)
		say(w, "%s of %s an item came out of %s", a, x,
		    doing(w, first, first_name, sizeof(first_name)));
	else
		say(w, "%s of %s an item came out of %s, and %s out of %s", a, x,
		    doing(w, first, first_name, sizeof(first_name)),
		    out_time(-changed(w, SIDE_DELAYED, second), b, sizeof(b)),
		    doing(w, second, second_name, sizeof(second_name)));
	return true;
}

static void say_how(struct words *w)
{
	const struct sweep_change *cpu = change_at(w, SIDE_DELAYED, EVIDENCE_ON_CPU);
	bool hides = w->target->verdict == VERDICT_HIDDEN || w->target->verdict == VERDICT_SLACK;
	char a[32], x[32];

	if (say_came_out(w))
		return;
	if (!hides && cpu->significant && cpu->delta.est > 0)
		say(w, "%s injected an item are %s more on a processor",
		    out_time(injected(w), x, sizeof(x)), out_time(cpu->delta.est, a, sizeof(a)));
	else if (hides && cpu->slope.hi < 0.5)
		say(w,
		    "the threads that were delayed were on a processor for no longer: the delay "
		    "of %s an item took the place of what they did there",
		    out_time(injected(w), x, sizeof(x)));
}

/* What else became longer for them: a queue for processors, a lock that another one holds now. */
static void say_longer(struct words *w)
{
	size_t i = most(w, SIDE_DELAYED, 1, EVIDENCE_ON_CPU);
	char a[32];

	if (i != NONE && changed(w, SIDE_DELAYED, i) > SMALL * injected(w))
		say(w, "the threads that were delayed spent %s more an item %s",
		    out_time(changed(w, SIDE_DELAYED, i), a, sizeof(a)), out_sweep_doing(i));
}

static void say_others(struct words *w)
{
	size_t up = most(w, SIDE_OTHERS, 1, NONE), down = most(w, SIDE_OTHERS, -1, NONE), i = up;
	char a[32];

	if (up == NONE ||
	    (down != NONE && -changed(w, SIDE_OTHERS, down) > changed(w, SIDE_OTHERS, up)))
		i = down;
	if (i != NONE && fabs(changed(w, SIDE_OTHERS, i)) > SMALL * injected(w))
		say(w, "other threads spent %s %s an item %s",
		    out_time(fabs(changed(w, SIDE_OTHERS, i)), a, sizeof(a)),
		    changed(w, SIDE_OTHERS, i) > 0 ? "more" : "less", out_sweep_doing(i));
}

size_t out_sweep_words(const struct sweep_result *res, const struct sweep_target *target,
		       const struct out_sweep_about *about,
		       char sentence[OUT_SENTENCES][OUT_SENTENCE])
{
	struct words w = { res, target, about, sentence, 0 };

	if (!target->change || !out_sweep_proven(target) || target->n_doses < 2)
		return 0;
	say_how(&w);
	say_longer(&w);
	say_others(&w);
	return w.n;
}

/* Delays spin: beyond this share they take processors from threads that have work. */
#define CROWDED 0.9

const char *out_sweep_crowded(const struct out_sweep_about *about)
{
	if (!(about->busy > CROWDED))
		return NULL;
	return "the processors had no idle time left, and a delay takes one from threads that have "
	       "work: what is hidden on an idle machine may be felt on this one";
}
