/* SPDX-License-Identifier: MIT */
/*
 * --max-slowdown: the share of a thread's time that the delays of a target take, whichever backend
 * measures it. With a limit, 200 ms of counting alone come first.
 */
#include <stdio.h>
#include "core.h"

#define MS 1000000ull

enum { WARN_PERCENT = 50, COUNT_MS = 200, LOOK_MS = 500 };

/* Where nearly all of a thread's time is delay, the rest of it is not known well enough for a
 * number. */
#define MOST 99.0

static void percent(double part, char *buf, size_t size)
{
	snprintf(buf, size, "%s%.0f %%", part < MOST ? "" : "more than ",
		 (part < MOST ? part : MOST) * 100);
}

/* part: delay time over the time without it, 0.3 is 30 %. */
static bool too_slow(struct session_core *s, const struct target *t, double part,
		     struct sb_err *err)
{
	double limit = s->cfg->max_slowdown;
	char adds[32];

	percent(part, adds, sizeof(adds));
	if (limit > 0 && part > limit) {
		err_set(err, SB_EREFUSED,
			"target '%s': %s add %s to a thread's time, more than --max-slowdown "
			"%.0f%%",
			t->spec->text, s->slow_measuring ? "its delay would" : "its delays", adds,
			limit * 100);
		err_hint(err, "choose a smaller delay, or every=N to delay each Nth call only");
		return true;
	}
	if (limit == 0 && part * 100 > WARN_PERCENT && !s->cfg->sweeping && !s->slow_warned) {
		s->slow_warned = true;
		session_warn(s,
			     "target '%s': its delays add %s to a thread's time (limit it "
			     "with --max-slowdown)",
			     t->spec->text, adds);
	}
	return false;
}

bool session_slow(struct session_core *s, uint64_t now, struct sb_err *err)
{
	bool measured = s->slow_measuring;

	if (!s->window_ns || now < s->window_ns + COUNT_MS * MS ||
	    (!measured && now - s->last_slow < LOOK_MS * MS))
		return false;
	if (!s->delays_ns)
		s->delays_ns = measured ? now : s->window_ns;
	for (size_t i = 0; i < s->n_targets; i++) {
		const struct target *t = &s->target[i];

		if (t->delay_ns && t->open && too_slow(s, t, s->backend->slowdown(s, i, now), err))
			return true;
	}
	s->last_slow = now;
	s->slow_measuring = false;
	for (size_t i = 0; i < s->n_targets && measured; i++)
		s->backend->apply(s, i);
	return false;
}
