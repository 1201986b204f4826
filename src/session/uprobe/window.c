/* SPDX-License-Identifier: MIT */
/* Settings of a target: stores into what the BPF program reads; and what its delays cost a
 * thread. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "priv.h"
#include "inject/clock.h"

#define MS 1000000ull

enum { COUNT_MS = 200 };

void usession_apply(struct session_core *core, size_t target)
{
	struct uprobe_session *s = usession(core);
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

static double part_of(struct uprobe_session *s, struct urecord *rec, size_t i, uint64_t now)
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

double usession_slowdown(struct session_core *core, size_t target, uint64_t now)
{
	double most = 0;

	for (struct urecord *rec = usession(core)->records; rec; rec = rec->next) {
		double part = rec->ended ? 0 : part_of(usession(core), rec, target, now);

		if (part > most)
			most = part;
	}
	return most;
}
