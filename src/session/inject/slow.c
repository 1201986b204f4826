/* SPDX-License-Identifier: MIT */
/*
 * For --max-slowdown: the share of a thread's time that the delays of a target take. After the
 * counting alone the last second is judged, so that a function that becomes hot late is noticed as
 * soon as one that was hot from the start.
 */
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "src/base/must.h"

#define MS 1000000ull

enum { SHORT_MS = 200 };

#define RAN_LEAST 0.125

static struct slow_look *look_of(struct inject_session *s, struct record *rec, size_t target,
				 size_t slots)
{
	struct slow_look *look;

	if (!rec->slow)
		rec->slow = must_calloc(s->max_targets, sizeof(*rec->slow));
	look = &rec->slow[target];
	for (int k = 0; k < 2 && !look->spent[k]; k++) {
		look->spent[k] = must_calloc(slots, sizeof(struct page_spent));
		look->at[k] = rec->since_ns > s->delays_ns ? rec->since_ns : s->delays_ns;
	}
	return look;
}

/* The slowdown of a thread: the share of its time that went into delays, over its other time. */
static double slowdown(double share)
{
	return share < 1 ? share / (1 - share) : 1000;
}

/*
 * A thread does not run while its delay is interrupted: that time does not count. It is booked when
 * the delay ends, so that a part of it may be older than the first look. In a crowd of threads that
 * wait for a processor that part is as long as the whole time, hence RAN_LEAST: without it a single
 * delay of 51 us was all of a second.
 */
double slow_share(double injected, double overrun, double ticks)
{
	double ran = ticks - overrun;

	if (injected <= 0)
		return 0;
	if (ran < ticks * RAN_LEAST)
		ran = ticks * RAN_LEAST;
	return ran > injected ? injected / ran : 1;
}

static double share(const struct page_spent *from, const struct page_spent *to, double ticks)
{
	return slow_share((double)to->injected - (double)from->injected,
			  (double)to->overrun - (double)from->overrun, ticks);
}

/* The largest recent share of any one thread of a process. */
static double recent(struct inject_session *s, struct record *rec, size_t target, uint64_t now)
{
	const struct page *page = &rec->space->control->page;
	size_t slots = page_slots(page);
	struct slow_look *look = look_of(s, rec, target, slots);
	struct page_spent *spent, *older = look->spent[0];
	double ns = (double)(now - look->at[0]), most = 0;

	if (ns < SHORT_MS * MS)
		return 0;
	spent = must_calloc(slots, sizeof(*spent));
	page_read_spent(page, rec->space->proc, (uint32_t)target, spent);
	for (size_t i = 0; i < slots; i++) {
		double part = share(&older[i], &spent[i], ns * s->clk.ticks_per_ns);

		most = part > most ? part : most;
	}
	look->spent[0] = look->spent[1];
	look->at[0] = look->at[1];
	look->spent[1] = spent;
	look->at[1] = now;
	free(older);
	return slowdown(most);
}

/* While only counting: hits times delay, of the thread with the most hits. */
static double projected(struct inject_session *s, const struct record *rec, size_t target,
			uint64_t now)
{
	const struct target *t = &s->target[target];
	struct page_sums sums = { 0 };

	record_counts(s, rec, target, &sums);
	return (double)sums.busiest_hits / (double)t->every * (double)t->delay_ns /
	       (double)(now - s->window_ns);
}

double inject_slowdown(struct session_core *core, size_t target, uint64_t now)
{
	struct inject_session *s = session_of(core);
	double most = 0;

	for (struct record *rec = s->records; rec; rec = rec->next) {
		double part;

		if (rec->ended || !rec->space || !rec->space->control || !rec->space->proc)
			continue;
		part = s->slow_measuring ? projected(s, rec, target, now) :
					   recent(s, rec, target, now);
		if (part > most)
			most = part;
	}
	return most;
}
