/* SPDX-License-Identifier: MIT */
/* From counters and records to the plain result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "session-priv.h"
#include "session-python.h"
#include "text.h"

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* Of a target: what ended processes left, and children that nobody saw. */
void session_other_sums(struct session *s, size_t i, struct page_sums *sums)
{
	*sums = s->target[i].past;
	/* Children that nobody saw: process 0 of each page, once. */
	s->look++;
	for (const struct record *rec = s->records; rec; rec = rec->next) {
		struct control *control = !rec->ended && rec->space ? rec->space->control : NULL;

		if (!control || control->look == s->look)
			continue;
		control->look = s->look;
		page_read(&control->page, 0, (uint32_t)i, sums);
	}
}

/* With what living processes show. */
void session_target_sums(struct session *s, size_t i, struct page_sums *sums)
{
	session_other_sums(s, i, sums);
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			record_counts(s, rec, i, sums);
}

void session_counts(struct session *s, struct result_counts *counts, double *t_s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums;

		session_target_sums(s, i, &sums);
		counts_from_sums(s, i, &sums, &counts[i]);
	}
	*t_s = s->armed ? (double)(clock_ns() - s->attached_ns) / 1e9 : 0;
}

static void fill_given(const struct session *s, const struct target *t,
		       const struct page_sums *sums, struct result_given *given)
{
	double cost = target_cost_ticks(s, (size_t)(t - s->target)), base;

	if (!sums->delayed) {
		snprintf(given->reason, sizeof(given->reason), "no hit was delayed");
		return;
	}
	if (t->changed) {
		snprintf(given->reason, sizeof(given->reason),
			 "its delay was changed while it ran: see injected_ns over delayed");
		return;
	}
	given->known = true;
	given->mean = clock_to_ns(&s->clk,
				  (double)sums->injected_ticks / (double)sums->delayed + cost);
	base = (double)clock_ticks(&s->clk, (double)t->delay_ns);
	if (base < cost)
		base = cost;
	given->p50 = (uint64_t)clock_to_ns(&s->clk, base + page_excess_quantile(sums, 0.50));
	given->p99 = (uint64_t)clock_to_ns(&s->clk, base + page_excess_quantile(sums, 0.99));
	given->max = (uint64_t)clock_to_ns(&s->clk, (double)sums->max_ticks + cost);
}

static enum result_outcome outcome_of(const struct target *t, const struct page_sums *sums,
				      const struct result_target *rt)
{
	if (sums->hits)
		return sums->delayed + sums->cuts ? OUTCOME_DELAYED : OUTCOME_COUNTED;
	if (rt->n_sites)
		return OUTCOME_NEVER_CALLED;
	if (rt->n_refused || python_refused(t))
		return OUTCOME_REFUSED;
	return t->module_seen && t->why.code != SB_ENOMODULE ? OUTCOME_NO_MATCH : OUTCOME_PENDING;
}

struct sighting {
	uint32_t site; /* index of the first equal record */
	pid_t pid;
};

static int site_cmp(const struct site_record *a, const struct site_record *b)
{
	int c;

	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	c = strcmp(a->module, b->module);
	return c ? c : strcmp(a->symbol, b->symbol);
}

static const struct site_record *sort_base;

static int by_sighting(const void *a, const void *b)
{
	const struct sighting *x = a, *y = b;
	int c = site_cmp(&sort_base[x->site], &sort_base[y->site]);

	return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Every (site, process) pair, from the regions that each record had. */
static size_t all_sightings(struct session *s, struct sighting **out)
{
	size_t n = 0, cap = 0;

	*out = NULL;
	for (struct record *rec = s->records; rec; rec = rec->next) {
		record_keep_regions(rec);
		for (size_t i = 0; i < rec->n_regions; i++) {
			const struct region *r = rec->regions[i];

			for (uint32_t k = 0; k < r->journal->n_sites; k++) {
				if (r->sites[k].cookie >= s->n_sites ||
				    s->site[r->sites[k].cookie].bell)
					continue;
				if (n == cap)
					*out = must(realloc(*out, (cap = cap ? cap * 2 : 256) *
									  sizeof(**out)));
				(*out)[n++] = (struct sighting){ r->sites[k].cookie, rec->pid };
			}
		}
	}
	sort_base = s->site;
	if (n)
		qsort(*out, n, sizeof(**out), by_sighting);
	return n;
}

static void add_site(struct session *s, struct result_target *rt, const struct sighting *see,
		     size_t n)
{
	const struct site_record *r = &s->site[see->site];
	struct result_site *site;

	if ((rt->n_sites & (rt->n_sites - 1)) == 0)
		rt->site = must(
			realloc(rt->site, (rt->n_sites ? rt->n_sites * 2 : 1) * sizeof(*rt->site)));
	site = &rt->site[rt->n_sites++];
	*site = (struct result_site){
		.module = text_dup(r->module),
		.build_id = text_dup(r->build_id),
		.symbol = text_dup(r->symbol),
		.name = must(symbol_shown(r->symbol)),
		.address = r->address,
		.size = r->size,
		.mechanism = text_dup(r->int3 ? "int3" : "jump"),
		.pids = must(calloc(n, sizeof(pid_t))),
	};
	for (size_t i = 0; i < n; i++)
		if (!site->n_pids || site->pids[site->n_pids - 1] != see[i].pid)
			site->pids[site->n_pids++] = see[i].pid;
}

static void fill_sites(struct session *s, struct result *res)
{
	struct sighting *see;
	size_t n = all_sightings(s, &see), first, last;

	for (first = 0; first < n; first = last) {
		const struct site_record *r = &s->site[see[first].site];

		for (last = first + 1; last < n && !site_cmp(r, &s->site[see[last].site]);)
			last++;
		add_site(s, &res->target[r->target], &see[first], last - first);
	}
	free(see);
}

static int by_pid(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

/* Distinct processes in which a target has a site. */
static size_t count_procs(const struct result_target *rt)
{
	size_t n = 0, total = 0, distinct = 0;
	pid_t *pids;

	for (size_t i = 0; i < rt->n_sites; i++)
		total += rt->site[i].n_pids;
	pids = must(malloc((total + 1) * sizeof(*pids)));
	for (size_t i = 0; i < rt->n_sites; i++)
		for (size_t k = 0; k < rt->site[i].n_pids; k++)
			pids[n++] = rt->site[i].pids[k];
	qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++)
		distinct += !i || pids[i] != pids[i - 1];
	free(pids);
	return distinct;
}

static void fill_refused(const struct target *t, struct result_target *rt)
{
	for (size_t i = 0; i < t->n_refused; i++)
		result_refuse(&rt->refused, &rt->n_refused, &t->refused[i], 0);
}

static void fill_target(struct session *s, size_t i, struct result_target *rt)
{
	const struct target *t = &s->target[i];
	struct page_sums sums;

	session_target_sums(s, i, &sums);
	rt->spec = text_dup(t->spec->text);
	rt->delay_ns = t->delay_ns;
	rt->every = t->every;
	rt->active_s = (double)(t->active_ns + (t->open ? clock_ns() - t->opened_at : 0)) / 1e9;
	counts_from_sums(s, i, &sums, &rt->counts);
	fill_given(s, t, &sums, &rt->given);
	fill_refused(t, rt);
	python_sites(s, i, rt);
	rt->outcome = outcome_of(t, &sums, rt);
	rt->procs = count_procs(rt);
	result_reason(rt, &t->why);
}

static void fill_process(const struct session *s, const struct record *rec,
			 struct result_process *rp)
{
	rp->pid = rec->pid;
	rp->generation = rec->generation;
	rp->comm = text_dup(rec->comm);
	rp->exe = text_dup(rec->exe);
	rp->counts = must(calloc(s->n_targets + 1, sizeof(*rp->counts)));
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums = { 0 };

		rp->counts[i] = rec->counts[i];
		if (rec->ended)
			continue;
		record_counts(s, rec, i, &sums);
		counts_from_sums(s, i, &sums, &rp->counts[i]);
	}
}

static void fill_processes(const struct session *s, struct result *res)
{
	size_t n = 0;

	for (const struct record *rec = s->records; rec; rec = rec->next)
		n++;
	res->process = must(calloc(n + 1, sizeof(*res->process)));
	res->n_processes = n;
	/* The list has the newest first; people read in order of time. */
	for (const struct record *rec = s->records; rec; rec = rec->next)
		fill_process(s, rec, &res->process[--n]);
}

static void split(uint64_t ns, struct timespec_ns *out)
{
	out->s = (int64_t)(ns / 1000000000);
	out->ns = (uint32_t)(ns % 1000000000);
}

struct result *session_result(struct session *s)
{
	struct result *res = result_new(s->n_targets);
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	res->host = text_dup(host);
	res->backend = text_dup("inject");
	res->exit = -1;
	split(s->started_real, &res->started);
	split(s->ended_real ? s->ended_real : clock_realtime_ns(), &res->ended);
	res->wall_s = s->wall_s;
	fill_sites(s, res);
	for (size_t i = 0; i < s->n_targets; i++)
		fill_target(s, i, &res->target[i]);
	fill_processes(s, res);
	if (s->n_folded)
		result_warn(res,
			    "%zu processes that ended early are counted in the totals and not "
			    "listed",
			    s->n_folded);
	res->gil = s->gil ? text_dup("held") : NULL;
	res->lease_lapsed_hits = s->lapsed;
	res->left_behind = s->left_behind;
	res->stop_known = s->detached;
	res->stop_attach_us = s->hold_attach_ns / 1000;
	res->stop_detach_us = s->hold_detach_ns / 1000;
	for (size_t i = 0; i < s->n_warnings; i++)
		result_warn(res, "%s", s->warning[i]);
	return res;
}
