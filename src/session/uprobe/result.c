/* SPDX-License-Identifier: MIT */
/* From the kernel's counters and the records to the plain result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "kernel/names.h"
#include "src/base/text.h"
#include "src/session/check.h"

void usession_counts(struct session_core *core, size_t first, size_t n,
		     struct result_counts *counts)
{
	for (size_t i = 0; i < n; i++) {
		struct page_sums sums;

		usession_target_sums(usession(core), first + i, &sums);
		usession_counts_from(&sums, &counts[i]);
	}
}

static void fill_given(const struct target *t, const struct page_sums *sums,
		       struct result_target *rt)
{
	struct result_given *given = &rt->given;
	double least = 0, base;

	if (!target_has_given(t, rt))
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
static void fill_sites(const struct uprobe_session *s, size_t target, struct result_target *rt)
{
	for (size_t i = 0; i < s->n_places; i++) {
		const struct uplace *p = &s->place[i];
		struct result_site *site;

		if (p->doorbell || p->target != target)
			continue;
		site = target_site(rt, p->module, p->build_id, p->symbol, p->address, p->size,
				   "uprobe");
		for (const struct urecord *rec = s->records; rec; rec = rec->next)
			if (rec->generation != -1u &&
			    (s->cfg->all ? rec->counts[target].hits != 0 : maps_it(p, rec)))
				result_add_pid(&site->pids, &site->n_pids, rec->pid);
	}
}

static void fill_target(struct uprobe_session *s, size_t i, struct result_target *rt)
{
	const struct page_sums *sums = &s->own[i].past;

	usession_counts_from(sums, &rt->counts);
	fill_given(&s->target[i], sums, rt);
	fill_sites(s, i, rt);
	usession_kernel_sites(s, i, rt);
	usession_times(&s->core, i, &rt->times);
}

static void fill_process(const struct uprobe_session *s, const struct urecord *rec,
			 struct result_process *rp)
{
	*rp = (struct result_process){ .pid = rec->pid,
				       .generation = rec->generation,
				       .comm = text_dup(rec->comm),
				       .exe = text_dup(rec->exe) };
	rp->counts = must_calloc(s->n_targets + 1, sizeof(*rp->counts));
	memcpy(rp->counts, rec->counts, s->n_targets * sizeof(*rp->counts));
}

/* The list has the newest first; the result is in order of time. A command before its exec is not a
 * program. */
static void fill_processes(const struct uprobe_session *s, struct result *res)
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

void usession_result(struct session_core *core, struct result *res)
{
	struct uprobe_session *s = usession(core);
	uint64_t lost = uprobes_lost_hits(s->u), apart = uprobes_hits_apart(s->u);

	for (size_t i = 0; i < s->n_targets; i++)
		fill_target(s, i, &res->target[i]);
	fill_processes(s, res);
	res->stop_known = true; /* no thread is ever held */
	if (s->cfg->trace_fd)
		res->trace = (struct result_trace){
			.file = text_dup(""), /* the command line knows it */
			.calls = s->traced.calls,
			.lost = s->traced.lost,
			.filtered = s->traced.filtered,
		};
	if (s->kernel_unseen)
		session_warn(
			s,
			"up to %llu calls in the kernel were not counted: each interrupted the "
			"program that counts the same function",
			(unsigned long long)s->kernel_unseen);
	if (apart)
		session_warn(s,
			     "%llu hits are counted for their targets and for no process: the "
			     "kernel had no memory at hand as many processes began",
			     (unsigned long long)apart);
	if (lost)
		session_warn(s,
			     "%llu hits could not be counted: there was no room for more processes",
			     (unsigned long long)lost);
}

/* ---- list ---- */

/* Makes up rows, one for each process. */
struct result *usession_list(struct session_core *core, struct sb_err *err)
{
	struct uprobe_session *s = usession(core);
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
	kernel_names_hold();
	for (size_t i = 0; i < s->n_targets; i++)
		if (spec_in_kernel(s->target[i].spec))
			usession_kernel_add(s, i, &(struct sb_err){ 0 });
	kernel_names_release();
	res = result_of_session(s->n_targets, "uprobe", 0, 0, 0);
	for (size_t i = 0; i < s->n_targets; i++) {
		fill_sites(s, i, &res->target[i]);
		usession_kernel_sites(s, i, &res->target[i]);
		target_list(&s->target[i], &res->target[i]);
		res->target[i].procs = result_processes(&res->target[i]);
	}
	fill_processes(s, res);
	return res;
}
