/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_HIT_H
#define SB_AGENT_HIT_H

#include "page.h"

/*
 * A hit: counted, filtered and delayed as the native hook does it (inject/arch/.../stub-code.S), in
 * the same slots of the same page. One call may hit several cells; the cost of the hook itself is
 * subtracted once, at the first delay.
 */
struct hit {
	const struct page *page;
	uint64_t cost;	/* ticks not yet subtracted */
	uint64_t *each; /* the function's own counter; NULL: it has none */
	bool last;	/* the caller reads no data of the agent after this */
};

/* The cell is not OFF, or was not a moment ago. */
void hit_cell(struct hit *hit, const struct sb_page_cell *cell);

/* Whether the cell's filter lets this thread pass. */
bool hit_passes(const struct page *page, const struct sb_page_cell *cell);

#endif
