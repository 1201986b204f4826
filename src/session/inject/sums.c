/* SPDX-License-Identifier: MIT */
/* The counts of a target, over all processes. */
#include "priv.h"

/* The counts of ended processes, and of children that were never seen. */
void session_other_sums(struct inject_session *s, size_t i, struct page_sums *sums)
{
	const struct page *page;

	*sums = s->own[i].past;
	/* Children that were never seen: process 0 of each page, once. */
	page_walk_begin(s);
	while ((page = page_walk_next(s)))
		page_read(page, 0, (uint32_t)i, sums);
}

/* With the counts of living processes. */
void session_target_sums(struct inject_session *s, size_t i, struct page_sums *sums)
{
	session_other_sums(s, i, sums);
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			record_counts(s, rec, i, sums);
}

void inject_counts(struct session_core *core, size_t first, size_t n, struct result_counts *counts)
{
	for (size_t i = 0; i < n; i++) {
		struct page_sums sums;

		session_target_sums(session_of(core), first + i, &sums);
		counts_from_sums(session_of(core), first + i, &sums, &counts[i]);
	}
}
