/* SPDX-License-Identifier: MIT */
/*
 * Records: the facts about each process, from its first sight until the result is written. The
 * counters of a living process are in the control page. When it ends they are taken from there, so
 * that its place in the page is free for the next process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "priv.h"
#include "python.h"
#include "src/base/maps.h"
#include "src/base/must.h"
#include "src/base/text.h"

enum { KEEP_ENDED = 500 };

static void slow_free(struct slow_look *look, size_t n_targets)
{
	for (size_t i = 0; look && i < n_targets; i++)
		for (int k = 0; k < 2; k++)
			free(look[i].spent[k]);
	free(look);
}

/* pid= means a process and its descendants: scope is inherited. */
static bool in_scope(const struct target *t, size_t index, pid_t pid, const struct record *parent)
{
	if (!t->spec->pid || t->spec->pid == pid)
		return true;
	return parent && parent->in_scope[index];
}

struct record *record_new(struct inject_session *s, struct proc *proc, struct record *parent)
{
	struct record *rec = must_calloc(1, sizeof(*rec));

	rec->pid = proc->pid;
	rec->since_ns = clock_ns();
	rec->looked = parent ? parent->looked : 0;
	rec->generation = proc->generation;
	processes_names(proc->pid, rec->comm, sizeof(rec->comm), &rec->exe);
	if (s->tracing)
		tracing_process(s->tracing, proc->pid, rec->comm);
	rec->space = proc->space ? space_get(proc->space) : NULL;
	rec->in_scope = must_calloc(s->max_targets, sizeof(*rec->in_scope));
	rec->counts = must_calloc(s->max_targets, sizeof(*rec->counts));
	for (size_t i = 0; i < s->n_targets; i++)
		rec->in_scope[i] = in_scope(&s->target[i], i, proc->pid, parent);
	rec->next = s->records;
	s->records = rec;
	return rec;
}

struct record *record_next(const struct inject_session *s)
{
	struct record *rec = s->records;

	while (rec && (rec->ended || rec->looked == s->round))
		rec = rec->next;
	return rec;
}

double target_cost_ticks(const struct inject_session *s, size_t target)
{
	return s->target[target].spec->kind == SPEC_PYTHON ? 0 : s->cost.delay_ticks;
}

int target_delays(const struct spec *spec)
{
	return spec->at == SPEC_AT_BOTH ? 2 : 1;
}

void counts_from_sums(const struct inject_session *s, size_t target, const struct page_sums *sums,
		      struct result_counts *counts)
{
	double cost = target_cost_ticks(s, target);
	double ticks = (double)(sums->injected_ticks + sums->cut_ticks);
	uint64_t delays = sums->delayed + sums->cuts;
	int each = target_delays(s->target[target].spec);

	counts->hits = sums->hits;
	counts->delayed = (delays + (uint64_t)each - 1) / (uint64_t)each;
	/* The stub cannot measure its own entry and exit: these were measured beforehand. */
	ticks += cost * (double)delays;
	counts->injected_ns = (uint64_t)clock_to_ns(&s->clk, ticks);
	counts->overrun_ns = (uint64_t)clock_to_ns(&s->clk, (double)sums->overrun_ticks);
}

void record_counts(const struct inject_session *s, const struct record *rec, size_t target,
		   struct page_sums *sums)
{
	(void)s;
	if (rec->space && rec->space->control && rec->space->proc)
		page_read(&rec->space->control->page, rec->space->proc, (uint32_t)target, sums);
}

void record_spans(const struct record *rec, size_t target, struct page_spans *spans)
{
	if (rec->space && rec->space->control && rec->space->proc)
		page_read_spans(&rec->space->control->page, rec->space->proc, (uint32_t)target,
				spans);
}

static void keep_spans(struct inject_session *s, const struct record *rec, size_t target)
{
	struct own_target *own = &s->own[target];

	if (!own->timed && !own->timed_once)
		return;
	if (!own->past_spans)
		own->past_spans = must_calloc(1, sizeof(*own->past_spans));
	record_spans(rec, target, own->past_spans);
}

static void keep_regions(struct record *rec)
{
	const struct space *space = rec->space;

	rec->regions = must_calloc(space->n_regions + 1, sizeof(*rec->regions));
	for (size_t i = 0; i < space->n_regions; i++)
		rec->regions[rec->n_regions++] = region_get(space->regions[i]);
}

void record_keep_regions(struct record *rec)
{
	if (rec->space && !rec->regions)
		keep_regions(rec);
}

/* Process 0 of the page, the entry of unregistered processes, ends with the last known process of
 * the page. */
static void end_unseen(struct inject_session *s, const struct control *control)
{
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->space && rec->space->control == control)
			return;
	each_keep(s, &control->page);
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums = { 0 };

		page_read(&control->page, 0, (uint32_t)i, &sums);
		page_sums_add(&s->own[i].past, &sums);
		s->lapsed += sums.lapsed;
	}
}

void record_end(struct inject_session *s, struct record *rec)
{
	struct space *space = rec->space;

	if (rec->ended)
		return;
	rec->ended = true;
	rec->ended_ns = clock_ns();
	perfmap_end(s, rec);
	if (!space)
		return;
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums = { 0 };

		record_counts(s, rec, i, &sums);
		counts_from_sums(s, i, &sums, &rec->counts[i]);
		page_sums_add(&s->own[i].past, &sums);
		s->lapsed += sums.lapsed;
		keep_spans(s, rec, i);
	}
	python_notes(s, rec);
	record_keep_regions(rec);
	if (space->control)
		end_unseen(s, space->control);
	if (space->control && space->proc) {
		if (s->tracing)
			tracing_process_gone(s->tracing, &space->control->page, space->proc);
		page_proc_free(&space->control->page, space->proc);
		space->proc = 0;
	}
	space_put(space);
	rec->space = NULL;
}

void record_left_page(struct inject_session *s, struct control *control, uint32_t proc)
{
	end_unseen(s, control);
	if (s->tracing)
		tracing_process_gone(s->tracing, &control->page, proc);
	page_proc_free(&control->page, proc);
}

void record_free_site(struct inject_session *s, uint32_t cookie)
{
	struct site_record *site = cookie < s->n_sites ? &s->site[cookie] : NULL;

	if (!site || !site->module)
		return;
	free(site->module);
	free(site->symbol);
	free(site->build_id);
	*site = (struct site_record){ .target = SIZE_MAX, .next_free = s->free_site };
	s->free_site = cookie + 1;
}

/* Frees the sites of a region without users, for reuse. */
static void free_sites(struct inject_session *s, const struct region *region)
{
	for (uint32_t i = 0; region->refs == 1 && i < region->journal->n_sites; i++)
		record_free_site(s, region->sites[i].cookie);
}

void record_drop(struct inject_session *s, struct record *rec)
{
	slow_free(rec->slow, s->max_targets);
	for (size_t i = 0; i < rec->n_regions; i++) {
		free_sites(s, rec->regions[i]);
		region_put(rec->regions[i]);
	}
	free(rec->regions);
	mailbox_free(rec->python.mailbox);
	space_put(rec->space);
	free(rec->exe);
	free(rec->named);
	free(rec->in_scope);
	free(rec->counts);
	free(rec);
}

/* A vfork child may still count as its ended parent. */
static bool in_use(const struct inject_session *s, const struct record *rec)
{
	for (const struct proc *p = s->tree.procs; p; p = p->next)
		if (p->session == rec)
			return true;
	return false;
}

/*
 * A server that forks or execs for each request must not fill our memory: only the newest rows of
 * ended processes are kept. Their counts are already in the totals of the targets. Do not call it
 * during a walk over the list.
 */
void record_fold(struct inject_session *s)
{
	struct record **at = &s->records;
	size_t ended = 0;

	while (*at) {
		struct record *rec = *at;

		if (!rec->ended || ++ended <= KEEP_ENDED || in_use(s, rec)) {
			at = &rec->next;
			continue;
		}
		*at = rec->next;
		record_drop(s, rec);
		s->n_folded++;
	}
}
