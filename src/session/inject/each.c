/* SPDX-License-Identifier: MIT */
/*
 * Counters of single functions (--hits-by-function). A native function has a word in every control
 * page, with the same number in all pages. A Python function has a word in each note that an agent
 * wrote about it.
 */
#include <stdlib.h>
#include <string.h>
#include "python.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "elf/symbol.h"

enum { EACH_MAX = 1 << 16, SLOTS = EACH_MAX * 2 };

struct each {
	size_t target;
	char *module, *symbol;
	uint64_t address;		/* 0: a Python function */
	uint64_t past;			/* of pages that no longer exist */
	struct sb_page_function *times; /* the same; NULL: none */
};

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return h;
}

static bool is_it(const struct each *e, size_t target, const char *module, const char *symbol,
		  uint64_t address)
{
	return e->target == target && e->address == address && !strcmp(e->symbol, symbol) &&
	       !strcmp(e->module, module);
}

/* The function's slot, or the free slot for it. */
static uint32_t *slot_of(const struct inject_session *s, size_t target, const char *module,
			 const char *symbol, uint64_t address)
{
	uint64_t h = hash(hash((0xcbf29ce484222325ull ^ target) + address, symbol), module);
	size_t i = (h ^ h >> 32) % SLOTS;

	while (s->each_slot[i] &&
	       !is_it(&s->each[s->each_slot[i] - 1], target, module, symbol, address))
		i = (i + 1) % SLOTS;
	return &s->each_slot[i];
}

/* For recorded calls. */
static void name_function(struct inject_session *s, uint32_t number)
{
	const struct each *e = &s->each[number - 1];
	char *name = must(symbol_shown(e->symbol));

	tracing_function(s->tracing, number, name, e->module);
	free(name);
}

uint32_t each_number(struct inject_session *s, size_t target, const char *module,
		     const char *symbol, uint64_t address)
{
	uint32_t *slot, number;

	if (!s->cfg->by_function || s->target[target].spec->thread)
		return 0;
	if (!s->each_slot) {
		s->each_slot = calloc(SLOTS, sizeof(*s->each_slot));
		must(s->each_slot);
	}
	slot = slot_of(s, target, module, symbol, address);
	number = *slot;
	if (number)
		return number;
	if (s->n_each == EACH_MAX) {
		if (!s->each_full)
			session_warn(s,
				     "there are more than %d functions: those found last have no "
				     "hits of their own",
				     EACH_MAX);
		s->each_full = true;
		return 0;
	}
	if (!(s->n_each & (s->n_each - 1))) {
		s->each = realloc(s->each, (s->n_each ? s->n_each * 2 : 1) * sizeof(*s->each));
		must(s->each);
	}
	s->each[s->n_each++] = (struct each){ .target = target,
					      .module = text_dup(module),
					      .symbol = text_dup(symbol),
					      .address = address };
	if (s->tracing && address)
		name_function(s, (uint32_t)s->n_each);
	return *slot = (uint32_t)s->n_each;
}

/* Adds the hits of a note. The target may have overwritten the note. */
static void add_note(struct inject_session *s, const struct page_note *note, uint64_t *sums)
{
	uint32_t *slot;

	if (note->cell >= s->n_targets)
		return;
	slot = slot_of(s, note->cell, note->module, note->symbol, 0);
	if (*slot)
		sums[*slot - 1] += note->hits;
}

static void add_page(struct inject_session *s, const struct page *page, uint64_t *sums)
{
	struct page_note note = { 0 };

	page_each_add(page, sums, s->n_each);
	while (page_next_note(page, &note))
		add_note(s, &note, sums);
	page_note_done(&note);
}

void each_keep(struct inject_session *s, const struct page *page)
{
	uint64_t *sums = s->n_each ? calloc(s->n_each, sizeof(*sums)) : NULL;

	if (!s->n_each)
		return;
	must(sums);
	add_page(s, page, sums);
	for (size_t i = 0; i < s->n_each; i++) {
		struct sb_page_function times;

		s->each[i].past += sums[i];
		if (!page_read_function(page, (uint32_t)i, &times))
			continue;
		if (!s->each[i].times)
			s->each[i].times = must_calloc(1, sizeof(times));
		page_function_add(s->each[i].times, &times);
	}
	free(sums);
}

bool each_times(struct inject_session *s, uint32_t number, struct sb_page_function *times)
{
	const struct page *page;

	*times = (struct sb_page_function){ 0 };
	if (!number || number > s->n_each)
		return false;
	if (s->each[number - 1].times)
		*times = *s->each[number - 1].times;
	page_walk_begin(s);
	while ((page = page_walk_next(s))) {
		struct sb_page_function more;

		if (page_read_function(page, number - 1, &more))
			page_function_add(times, &more);
	}
	return times->calls;
}

void each_free(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_each; i++) {
		free(s->each[i].module);
		free(s->each[i].symbol);
		free(s->each[i].times);
	}
	free(s->each);
	free(s->each_slot);
}

uint64_t *each_sums(struct inject_session *s)
{
	uint64_t *sums = s->n_each ? calloc(s->n_each, sizeof(*sums)) : NULL;
	const struct page *page;

	if (!s->n_each)
		return NULL;
	must(sums);
	for (size_t i = 0; i < s->n_each; i++)
		sums[i] = s->each[i].past;
	page_walk_begin(s);
	while ((page = page_walk_next(s)))
		add_page(s, page, sums);
	return sums;
}

size_t each_list(struct inject_session *s, size_t target, struct session_function **list)
{
	uint64_t *sums = each_sums(s);
	size_t n = 0;

	*list = must_calloc(s->n_each + 1, sizeof(**list));
	for (size_t i = 0; i < s->n_each; i++)
		if (s->each[i].target == target)
			(*list)[n++] = (struct session_function){ s->each[i].module,
								  s->each[i].symbol, sums[i] };
	free(sums);
	return n;
}
