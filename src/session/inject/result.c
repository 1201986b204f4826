/* SPDX-License-Identifier: MIT */
/* From counters and records to the plain result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "python.h"
#include "src/base/must.h"
#include "src/base/text.h"

/* The mean delay of so many hits must lie between these shares of the set delay. */
#define GIVEN_LEAST 0.95
#define GIVEN_MOST  1.1
enum { CHECK_HITS = 100, PYTHON_FLOOR_NS = 2000, TRACE_SLACK = 1000 };

size_t inject_functions(struct session_core *core, size_t target, struct session_function **list)
{
	struct inject_session *s = session_of(core);

	*list = NULL;
	if (!s->cfg->by_function)
		return 0;
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			python_notes(s, rec);
	return each_list(s, target, list);
}

/* ---- where it is hooked ---- */

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

/* Every (site, process) pair, from the regions of each record. */
static size_t all_sightings(const struct inject_session *s, struct sighting **out)
{
	size_t n = 0, cap = 0;

	*out = NULL;
	for (const struct record *rec = s->records; rec; rec = rec->next) {
		for (size_t i = 0; i < rec->n_regions; i++) {
			const struct region *r = rec->regions[i];

			for (uint32_t k = 0; k < r->journal->n_sites; k++) {
				if (r->sites[k].cookie >= s->n_sites ||
				    s->site[r->sites[k].cookie].doorbell ||
				    s->site[r->sites[k].cookie].end)
					continue;
				if (n == cap)
					*out = must_realloc(*out, (cap = cap ? cap * 2 : 256) *
									  sizeof(**out));
				(*out)[n++] = (struct sighting){ r->sites[k].cookie, rec->pid };
			}
		}
	}
	sort_base = s->site;
	if (n)
		qsort(*out, n, sizeof(**out), by_sighting);
	return n;
}

static void add_site(struct inject_session *s, struct result_target *rt, const struct sighting *see,
		     size_t n, const uint64_t *each)
{
	const struct site_record *r = &s->site[see->site];
	struct result_site *site = target_site(rt, r->module, r->build_id, r->symbol, r->address,
					       r->size, r->int3 ? "int3" : "jump");

	site->each = each && r->each;
	site->hits = site->each ? each[r->each - 1] : 0;
	if (site->each && s->target[r->target].spec->timed)
		times_of_site(s, r, &site->times);
	if (site->times.known && site->hits > site->times.calls)
		site->times.missed = site->hits - site->times.calls;
	site->pids = must_calloc(n, sizeof(pid_t));
	site->function = r->function;
	for (size_t i = 0; i < n; i++)
		if (!site->n_pids || site->pids[site->n_pids - 1] != see[i].pid)
			site->pids[site->n_pids++] = see[i].pid;
}

static void fill_sites(struct inject_session *s, struct result *res, const uint64_t *each)
{
	struct sighting *see;
	size_t n = all_sightings(s, &see), first, last;

	for (first = 0; first < n; first = last) {
		const struct site_record *r = &s->site[see[first].site];

		for (last = first + 1; last < n && !site_cmp(r, &s->site[see[last].site]);)
			last++;
		add_site(s, &res->target[r->target], &see[first], last - first, each);
	}
	free(see);
}

/* ---- its delay, as given ---- */

/*
 * A quantile over all delayed hits, as counted by `delayed` and `injected_ns`. Hits that were cut
 * short, by a change or the end of a window, got less than the set delay and come first.
 */
static double given_quantile(const struct inject_session *s, const struct target *t,
			     const struct page_sums *sums, double quantile)
{
	double cost = target_cost_ticks(s, (size_t)(t - s->target)), base;
	double want = quantile * (double)(sums->delayed + sums->cuts) - (double)sums->cuts;

	if (want < 0 || !sums->delayed)
		return (double)sums->cut_ticks / (double)sums->cuts + cost;
	base = (double)clock_ticks(&s->clk, (double)t->delay_ns) / target_delays(t->spec);
	if (base < cost)
		base = cost;
	return base + page_excess_quantile(sums, want / (double)sums->delayed);
}

static uint64_t whole_ns(const struct inject_session *s, double ticks)
{
	return (uint64_t)(clock_to_ns(&s->clk, ticks) + 0.5);
}

static void fill_given(const struct inject_session *s, const struct target *t,
		       const struct page_sums *sums, struct result_target *rt)
{
	struct result_given *given = &rt->given;
	double cost = target_cost_ticks(s, (size_t)(t - s->target));
	double ticks = (double)sums->injected_ticks + (double)sums->cut_ticks;
	int each = target_delays(t->spec);

	if (!target_has_given(t, rt))
		return;
	/* Of at=both: twice the figures of its halves. */
	given->mean = each *
		      clock_to_ns(&s->clk, ticks / (double)(sums->delayed + sums->cuts) + cost);
	/* The difference of two measurements of the hook's cost, and one step of the clock over all
	 * hits. */
	given->uncertainty =
		t->spec->kind == SPEC_PYTHON ?
			NAN :
			each * clock_to_ns(&s->clk, s->cost.spread_ticks +
							    s->clk.quantum_ticks /
								    sqrt((double)(sums->delayed +
										  sums->cuts)));
	given->p50 = (uint64_t)each * whole_ns(s, given_quantile(s, t, sums, 0.50));
	given->p99 = (uint64_t)each * whole_ns(s, given_quantile(s, t, sums, 0.99));
	given->max = (uint64_t)each * whole_ns(s, (double)sums->max_ticks + cost);
}

/*
 * Hits times delay must agree with the injected time. A delay that was changed, cut short or is
 * below the floor has its own message elsewhere.
 */
static void check_given(const struct inject_session *s, const struct target *t,
			const struct page_sums *sums, const struct result_given *given,
			struct result *res)
{
	double asked = (double)t->delay_ns, floor = s->cost.floor_ns + 20;

	if (t->spec->kind == SPEC_PYTHON)
		floor = PYTHON_FLOOR_NS;
	if (!given->known || asked < floor || sums->delayed < CHECK_HITS ||
	    sums->cuts * 100 > sums->delayed)
		return;
	if (given->mean < asked * GIVEN_LEAST || given->mean > asked * GIVEN_MOST)
		result_warn(res,
			    "target '%s': its calls were given %.0f ns on average and %.0f were "
			    "asked: do not rely on its delay",
			    t->spec->text, given->mean, asked);
}

/* ---- the result: no record lives any more ---- */

static void fill_target(struct inject_session *s, size_t i, const uint64_t *each,
			struct result *res)
{
	struct result_target *rt = &res->target[i];
	const struct target *t = &s->target[i];
	const struct page_sums *sums = &s->own[i].past;

	counts_from_sums(s, i, sums, &rt->counts);
	fill_given(s, t, sums, rt);
	check_given(s, t, sums, &rt->given, res);
	if (s->own[i].timed_once)
		inject_spans(&s->core, i, &rt->spans);
	if (t->spec->timed)
		inject_times(&s->core, i, &rt->times);
	python_sites(s, i, each, rt);
}

static void fill_process(const struct inject_session *s, const struct record *rec,
			 struct result_process *rp, uint64_t first_ns)
{
	rp->pid = rec->pid;
	rp->began_ns = rec->since_ns - first_ns;
	rp->ended_ns = (rec->ended_ns ? rec->ended_ns : clock_ns()) - first_ns;
	rp->generation = rec->generation;
	rp->comm = text_dup(rec->comm);
	rp->exe = text_dup(rec->exe);
	rp->counts = must_calloc(s->n_targets + 1, sizeof(*rp->counts));
	memcpy(rp->counts, rec->counts, s->n_targets * sizeof(*rp->counts));
}

static void fill_processes(const struct inject_session *s, struct result *res)
{
	uint64_t first = UINT64_MAX;
	size_t n = 0;

	for (const struct record *rec = s->records; rec; rec = rec->next, n++)
		first = rec->since_ns < first ? rec->since_ns : first;
	res->process = must_calloc(n + 1, sizeof(*res->process));
	res->n_processes = n;
	/* The list has the newest first; the result is in order of time. */
	for (const struct record *rec = s->records; rec; rec = rec->next)
		fill_process(s, rec, &res->process[--n], first);
}

/*
 * Recorded calls and sums are of the same calls, except those of threads that were in the middle of
 * a hook at the detach. A recursive Python function has more records than calls.
 */
static void check_trace(const struct inject_session *s, struct result *res)
{
	const struct tracing_sums *t = &s->traced;
	uint64_t calls = 0, records = t->calls + t->lost + t->unseen + t->filtered;
	bool comparable = s->cfg->trace_fd;

	for (size_t i = 0; i < s->n_targets; i++) {
		const struct spec *spec = s->target[i].spec;

		comparable &= spec->timed && spec->kind != SPEC_PYTHON && !s->target[i].delay_ns;
		calls += res->target[i].times.calls;
	}
	if (comparable && (records + TRACE_SLACK + calls / 1000 < calls ||
			   calls + TRACE_SLACK + calls / 1000 < records))
		result_warn(res,
			    "%llu calls were timed and %llu recorded or lost: do not rely on the "
			    "trace",
			    (unsigned long long)calls, (unsigned long long)records);
}

/* Whether all processes that used a device are in it, the command line finds by what it wrote. */
static void fill_device(const struct inject_session *s, struct result *res)
{
	const struct device_sums *d = &s->device_sums;
	const char *why = s->device_why ? s->device_why : d->cut_why;

	res->device = (struct result_device){
		.asked = s->cfg->device_times,
		.counted = d->processes,
		.reason = why ? text_dup(why) : NULL,
		.processes = d->processes,
		.records = d->records,
		.written = d->written,
		.dropped = d->dropped,
		.unknown = d->unknown,
		.cupti_dropped = d->cupti_dropped,
		.clock_error_ns = d->clock_ns,
		.late_ns = d->late_ns,
	};
}

void inject_result(struct session_core *core, struct result *res)
{
	struct inject_session *s = session_of(core);
	uint64_t *each = each_sums(s);

	fill_sites(s, res, each);
	for (size_t i = 0; i < s->n_targets; i++)
		fill_target(s, i, each, res);
	free(each);
	fill_processes(s, res);
	if (s->n_folded)
		result_warn(res,
			    "%zu processes that ended early are counted in the totals and not "
			    "listed",
			    s->n_folded);
	res->gil = s->gil ? text_dup("held") : NULL;
	res->lease_lapsed_hits = s->lapsed;
	res->doorbells_lost = s->doorbells_lost;
	res->stalled_s = (double)s->stalled_ns / 1e9;
	res->left_behind = s->left_behind;
	check_trace(s, res);
	if (s->cfg->trace_fd) {
		res->trace = (struct result_trace){
			.file = text_dup(""), /* the command line knows it */
			.calls = s->traced.calls,
			.delays = s->traced.delays,
			.lost = s->traced.lost,
			.unseen = s->traced.unseen,
			.filtered = s->traced.filtered,
			.stacks = s->traced.stacks,
			.stacks_lost = s->traced.stacks_lost,
		};
	}
	fill_device(s, res);
	res->stop_known = true;
	res->stop_attach_us = s->hold_attach_ns / 1000;
	res->stop_detach_us = s->hold_detach_ns / 1000;
	res->gil_known = s->gil;
	res->gil_attach_us = s->gil_ns[0] / 1000;
	res->gil_detach_us = s->gil_ns[1] / 1000;
}
