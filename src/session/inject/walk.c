/* SPDX-License-Identifier: MIT */
/* The pages of living processes, each once. */
#include "priv.h"

void page_walk_begin(struct inject_session *s)
{
	s->look++;
	s->walk = s->records;
}

const struct page *page_walk_next(struct inject_session *s)
{
	while (s->walk) {
		const struct record *rec = s->walk;
		struct control *control = !rec->ended && rec->space ? rec->space->control : NULL;

		s->walk = rec->next;
		if (!control || control->look == s->look)
			continue;
		control->look = s->look;
		return &control->page;
	}
	return NULL;
}
