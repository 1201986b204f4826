/* SPDX-License-Identifier: MIT */
/* From the kernel's counters and the records to the plain result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "inject/clock.h"
#include "src/base/text.h"
#include "src/session/check.h"

void usession_counts(struct session *s, struct result_counts *counts, double *t_s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums;

		usession_target_sums(s, i, &sums);
		usession_counts_from(&sums, &counts[i]);
	}
	*t_s = s->armed ? (double)(clock_ns() - s->attached_ns) / 1e9 : 0;
}

static void fill_given(const struct target *t, const struct page_sums *sums,
		       struct result_given *given)
{
	double least = 0, base;

	if (!target_has_given(t, sums, given))
		return;
	given->uncertainty = NAN;
	given->mean = (double)sums->injected_ticks / (double)sums->delayed;
	/* The own cost of a hit may exceed the set delay: then that is the given delay. */
	if (given->mean > (double)t->delay_ns)
		least = given->mean - page_excess_quantile(sums, 0.5);
	base = (double)t->delay_ns > least ? (double)t->delay_ns : least;
	given->p50 = (uint64_t)(base + page_excess_quantile(sums, 0.50));
	given->p99 = (uint64_t)(base + page_excess_quantile(sums, 0.99));
	given->max = sums->max_ticks;
}

static bool maps_it(const struct uplace *p, const struct urecord *rec)
{
	for (size_t i = 0; i < p->n_rows; i++)
		if (p->rows[i] == rec->row || p->rows[i] == rec->image)
			return true;
	return false;
}

/* -a: the processes that have hit the target; hits of its single sites are not counted. */
static bool has_hit(const struct session *s, const struct urecord *rec, size_t target)
{
	struct page_sums sums = { 0 };

	if (rec->ended)
		return rec->counts[target].hits;
	usession_sums(s, rec, target, &sums);
	return sums.hits;
}

static void fill_site(const struct session *s, const struct uplace *p, struct result_site *site)
{
	*site = (struct result_site){
		.module = text_dup(p->module),
		.build_id = text_dup(p->build_id),
		.symbol = text_dup(p->symbol),
		.name = must(symbol_shown(p->symbol)),
		.address = p->address,
		.size = p->size,
		.mechanism = text_dup("uprobe"),
	};
	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		if (rec->generation != -1u &&
		    (s->cfg->all ? has_hit(s, rec, p->target) : maps_it(p, rec)))
			result_add_pid(&site->pids, &site->n_pids, rec->pid);
}

static void fill_sites(const struct session *s, size_t target, struct result_target *rt)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_places; i++)
		n += !s->place[i].bell && s->place[i].target == target;
	rt->site = must_calloc(n + 1, sizeof(*rt->site));
	for (size_t i = 0; i < s->n_places; i++)
		if (!s->place[i].bell && s->place[i].target == target)
			fill_site(s, &s->place[i], &rt->site[rt->n_sites++]);
}

static void fill_target(const struct session *s, size_t i, struct result_target *rt)
{
	const struct target *t = &s->target[i];
	struct page_sums sums;

	usession_target_sums(s, i, &sums);
	target_fill(t, clock_ns(), rt);
	usession_counts_from(&sums, &rt->counts);
	fill_given(t, &sums, &rt->given);
	fill_sites(s, i, rt);
	target_outcome(t, &sums, rt);
}

static void fill_process(const struct session *s, const struct urecord *rec,
			 struct result_process *rp)
{
	*rp = (struct result_process){ .pid = rec->pid,
				       .generation = rec->generation,
				       .comm = text_dup(rec->comm),
				       .exe = text_dup(rec->exe) };
	rp->counts = must_calloc(s->n_targets + 1, sizeof(*rp->counts));
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums = { 0 };

		rp->counts[i] = rec->counts[i];
		if (rec->ended)
			continue;
		usession_sums(s, rec, i, &sums);
		usession_counts_from(&sums, &rp->counts[i]);
	}
}

/* The list has the newest first; the result is in order of time. A command before its exec is not a
 * program. */
static void fill_processes(const struct session *s, struct result *res)
{
	size_t n = 0;

	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		n += rec->generation != -1u;
	res->process = must_calloc(n + 1, sizeof(*res->process));
	res->n_processes = n;
	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		if (rec->generation != -1u)
			fill_process(s, rec, &res->process[--n]);
}

struct result *usession_result(struct session *s)
{
	uint64_t ended = s->ended_real ? s->ended_real : clock_realtime_ns();
	uint64_t lost = uprobes_lost_hits(s->u);
	struct result *res = result_of_session(s->n_targets, "uprobe", s->started_real, ended,
					       s->wall_s);

	for (size_t i = 0; i < s->n_targets; i++)
		fill_target(s, i, &res->target[i]);
	fill_processes(s, res);
	res->stop_known = true; /* no thread is ever held */
	if (lost)
		usession_warn(s,
			      "%llu hits could not be counted: there was no room for more "
			      "processes",
			      (unsigned long long)lost);
	warnings_tell(&s->warnings, res);
	return res;
}

/* ---- list ---- */

/* Makes up rows, one for each process. */
struct result *usession_list(struct session *s, struct sb_err *err)
{
	struct result *res;
	pid_t *pids;
	size_t n;

	for (size_t i = 0; i < s->cfg->n_pids && !err->code && !s->cfg->preview; i++)
		check_readable(s->cfg->pids[i], err);
	processes_descendants(s->cfg, &pids, &n);
	for (size_t i = n; i-- > 0 && !err->code;) {
		struct urecord *rec = must_calloc(1, sizeof(*rec));

		rec->pid = pids[i];
		rec->row = rec->image = (uint32_t)i + 1;
		processes_names(pids[i], rec->comm, sizeof(rec->comm), &rec->exe);
		rec->counts = must_calloc(s->max_targets, sizeof(*rec->counts));
		rec->ended = true; /* there are no counters to read */
		rec->next = s->records;
		s->records = rec;
		usession_look(s, pids[i], rec->row);
	}
	usession_look_files(s);
	free(pids);
	res = result_of_session(s->n_targets, "uprobe", 0, 0, 0);
	for (size_t i = 0; i < s->n_targets; i++) {
		fill_sites(s, i, &res->target[i]);
		target_list(&s->target[i], &res->target[i]);
		res->target[i].procs = result_processes(&res->target[i]);
	}
	fill_processes(s, res);
	return res;
}
