/* SPDX-License-Identifier: MIT */
/* When a target counts and delays: stores into the settings that the BPF program reads. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "priv.h"
#include "inject/clock.h"
#include "src/session/slowdown.h"

#define MS 1000000ull

enum { COUNT_MS = 200, LOOK_MS = 500 };

void usession_apply(struct session *s, size_t target)
{
	const struct target *t = &s->target[target];
	struct uprobe_target *u = uprobes_target(s->u, (uint32_t)target);
	bool delay = t->delay_ns > 0 && !s->slow_measuring;

	u->delay_ns = t->delay_ns;
	u->every = t->every;
	u->need = s->own[target].root;
	__atomic_store_n(&u->state,
			 !t->open ? UPROBE_OFF :
			 delay	  ? UPROBE_DELAY :
				    UPROBE_COUNT,
			 __ATOMIC_RELEASE);
}

/* Has the event of --start-on occurred? */
static bool triggered(const struct session *s)
{
	struct page_sums sums;

	if (!s->cfg->start_on)
		return true;
	if (s->start_on_target == SIZE_MAX)
		return access(s->cfg->start_on, F_OK) == 0;
	usession_target_sums(s, s->start_on_target, &sums);
	return sums.hits > 0;
}

static bool should_open(const struct session *s, size_t i, uint64_t now)
{
	const struct target *t = &s->target[i];

	if (!s->armed || !s->enabled || t->removed || t->muted)
		return false;
	return i == s->start_on_target || target_in_window(t, s->window_ns, now);
}

static void switch_target(struct session *s, size_t i, bool open, uint64_t now)
{
	target_switch(&s->target[i], open, now);
	usession_apply(s, i);
}

uint64_t usession_windows(struct session *s, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (s->armed && !s->window_ns && triggered(s))
		s->window_ns = now + s->cfg->start_ns;
	for (size_t i = 0; i < s->n_targets; i++) {
		bool open = should_open(s, i, now);
		uint64_t left = target_until_change(&s->target[i], s->window_ns, now);

		if (open != s->target[i].open)
			switch_target(s, i, open, now);
		if (left < next)
			next = left;
	}
	return next;
}

void usession_close_windows(struct session *s)
{
	uint64_t now = clock_ns();

	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].open)
			switch_target(s, i, false, now);
	if (s->armed)
		s->wall_s = (double)(now - s->attached_ns) / 1e9;
}

/* ---- --max-slowdown ---- */

static uint64_t threads_of(pid_t pid)
{
	uint64_t n = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n ? n : 1;
}

/*
 * The share of a process's total that its most delayed thread has. Counters are by processor, so it
 * is at least an even share, and at least the count of the busiest processor.
 */
static uint64_t of_one_thread(const struct urecord *rec, uint64_t total, uint64_t busiest)
{
	uint64_t share = total / threads_of(rec->pid);

	return share > busiest ? share : busiest;
}

static double part_of(struct session *s, struct urecord *rec, size_t i, uint64_t now)
{
	const struct target *t = &s->target[i];
	uint64_t since = rec->since_ns > s->last_slow ? rec->since_ns : s->last_slow, spent, before;
	struct uprobe_sum sum;
	double share;

	if (!uprobes_read(s->u, rec->row, (uint32_t)i, &sum))
		return 0;
	if (s->slow_measuring)
		return (double)of_one_thread(rec, sum.all.hits, sum.busiest_hits) /
		       (double)t->every * (double)t->delay_ns / (double)(now - s->window_ns);
	spent = of_one_thread(rec, sum.all.injected_ns + sum.all.overrun_ns, sum.busiest_ns);
	before = rec->spent[i];
	rec->spent[i] = spent;
	if (!before || now < since + COUNT_MS * MS || spent < before)
		return 0;
	share = (double)(spent - before) / (double)(now - since);
	return share < 1 ? share / (1 - share) : 1000;
}

static bool too_slow(struct session *s, const struct target *t, double part, struct sb_err *err)
{
	char warning[SLOWDOWN_WARNING];

	if (slowdown_refused(s->cfg, t->spec->text, part, s->slow_measuring, warning, err))
		return true;
	if (warning[0] && !s->slow_warned) {
		s->slow_warned = true;
		usession_warn(s, "%s", warning);
	}
	return false;
}

static double worst(struct session *s, size_t i, uint64_t now)
{
	double most = 0;

	for (struct urecord *rec = s->records; rec; rec = rec->next) {
		double part = rec->ended ? 0 : part_of(s, rec, i, now);

		if (part > most)
			most = part;
	}
	return most;
}

bool usession_slow(struct session *s, uint64_t now, struct sb_err *err)
{
	if (!s->window_ns || now < s->window_ns + COUNT_MS * MS ||
	    (!s->slow_measuring && now - s->last_slow < LOOK_MS * MS))
		return false;
	for (size_t i = 0; i < s->n_targets; i++) {
		const struct target *t = &s->target[i];

		if (t->delay_ns && t->open && too_slow(s, t, worst(s, i, now), err))
			return true;
	}
	s->last_slow = now;
	if (s->slow_measuring) {
		s->slow_measuring = false;
		for (size_t i = 0; i < s->n_targets; i++)
			usession_apply(s, i);
	}
	return false;
}
