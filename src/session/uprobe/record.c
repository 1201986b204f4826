/* SPDX-License-Identifier: MIT */
/* The records of a session of uprobes: one for each program image of a process, with its
 * counters. */
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "inject/clock.h"

struct urecord *usession_record(const struct uprobe_session *s, uint32_t row)
{
	struct urecord *rec = s->records;

	while (rec && rec->row != row)
		rec = rec->next;
	return rec;
}

struct urecord *usession_record_of(const struct uprobe_session *s, pid_t pid)
{
	struct urecord *rec = s->records;

	while (rec && (rec->pid != pid || rec->ended))
		rec = rec->next;
	return rec;
}

struct urecord *usession_record_new(struct uprobe_session *s, pid_t pid, uint32_t row,
				    uint32_t generation)
{
	struct urecord *rec = must_calloc(1, sizeof(*rec));

	rec->pid = pid;
	rec->row = rec->image = row;
	rec->generation = generation;
	rec->since_ns = clock_ns();
	processes_names(pid, rec->comm, sizeof(rec->comm), &rec->exe);
	rec->counts = must_calloc(s->max_targets, sizeof(*rec->counts));
	rec->spent = must_calloc(s->max_targets, sizeof(*rec->spent));
	rec->next = s->records;
	s->records = rec;
	return rec;
}

void usession_record_free(struct urecord *rec)
{
	free(rec->exe);
	free(rec->counts);
	free(rec->spent);
	free(rec);
}

static void sums_of(const struct uprobe_sum *from, struct page_sums *to)
{
	memset(to, 0, sizeof(*to));
	to->hits = from->all.hits;
	to->cuts = from->all.cuts;
	to->cut_ticks = from->all.cut_ns;
	to->injected_ticks = from->all.injected_ns;
	to->overrun_ticks = from->all.overrun_ns;
	to->max_ticks = from->all.max_ns;
	for (int i = 0; i < SB_PAGE_BUCKETS; i++) {
		to->bucket[i] = from->all.bucket[i];
		to->delayed += from->all.bucket[i];
	}
}

static void add_row(const struct uprobe_session *s, uint32_t row, size_t target,
		    struct page_sums *sums)
{
	struct uprobe_sum sum;
	struct page_sums one;

	if (!s->u || !uprobes_read(s->u, row, (uint32_t)target, &sum))
		return;
	sums_of(&sum, &one);
	page_sums_add(sums, &one);
}

void usession_sums(const struct uprobe_session *s, const struct urecord *rec, size_t target,
		   struct page_sums *sums)
{
	add_row(s, rec->row, target, sums);
}

void usession_end_apart(struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		add_row(s, 0, i, &s->own[i].past);
		uprobes_forget(s->u, 0, (uint32_t)i);
	}
}

void usession_end_record(struct uprobe_session *s, struct urecord *rec)
{
	if (rec->ended)
		return;
	rec->ended = true;
	for (size_t i = 0; i < s->n_targets; i++) {
		struct page_sums sums = { 0 };

		usession_sums(s, rec, i, &sums);
		usession_counts_from(&sums, &rec->counts[i]);
		page_sums_add(&s->own[i].past, &sums);
		uprobes_forget(s->u, rec->row, (uint32_t)i);
	}
}

void usession_target_sums(const struct uprobe_session *s, size_t target, struct page_sums *sums)
{
	*sums = s->own[target].past;
	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			usession_sums(s, rec, target, sums);
	add_row(s, 0, target, sums);
}

void usession_counts_from(const struct page_sums *sums, struct result_counts *counts)
{
	counts->hits = sums->hits;
	counts->delayed = sums->delayed + sums->cuts;
	counts->injected_ns = sums->injected_ticks + sums->cut_ticks;
	counts->overrun_ns = sums->overrun_ticks;
}
