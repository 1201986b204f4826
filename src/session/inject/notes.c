/* SPDX-License-Identifier: MIT */
/* The notes that agents write about found functions: from a page into the result. */
#include <stdlib.h>
#include <string.h>
#include "python.h"
#include "src/base/text.h"

enum { PIDS_SHOWN = 1000 };

/* A Python function with all processes that have it. */
struct python_site {
	size_t target;
	char *module, *symbol, *file;
	uint32_t line;
	uint32_t each; /* number of its own counter, 0: none */
	pid_t *pids;
	size_t n_pids;
};

static uint64_t hash(uint64_t h, const char *text)
{
	do
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	while (*text++);
	return h;
}

/* The slot of a function, or the free slot for it. */
static uint32_t *slot_of(const struct inject_session *s, size_t target, const char *module,
			 const char *symbol)
{
	uint64_t h = hash(hash(0xcbf29ce484222325ull ^ target, module), symbol);
	size_t mask = s->pysite_slots - 1, i = (h ^ h >> 32) & mask;

	for (; s->pysite_slot[i]; i = (i + 1) & mask) {
		const struct python_site *at = &s->pysite[s->pysite_slot[i] - 1];

		if (at->target == target && !strcmp(at->symbol, symbol) &&
		    !strcmp(at->module, module))
			break;
	}
	return &s->pysite_slot[i];
}

/* Doubles the table: interpreters have functions by the ten thousand. */
static void grow(struct inject_session *s)
{
	size_t more = s->pysite_slots ? s->pysite_slots * 2 : 1024;

	s->pysite = reallocarray(s->pysite, more / 2, sizeof(*s->pysite));
	free(s->pysite_slot);
	s->pysite_slot = calloc(more, sizeof(*s->pysite_slot));
	if (!s->pysite || !s->pysite_slot)
		abort();
	s->pysite_slots = more;
	for (size_t i = 0; i < s->n_pysites; i++)
		*slot_of(s, s->pysite[i].target, s->pysite[i].module,
			 s->pysite[i].symbol) = (uint32_t)i + 1;
}

static struct python_site *site_of(struct inject_session *s, size_t target, const char *module,
				   const char *symbol)
{
	struct python_site *site;
	uint32_t *slot;

	if (s->n_pysites >= s->pysite_slots / 2)
		grow(s);
	slot = slot_of(s, target, module, symbol);
	if (*slot)
		return &s->pysite[*slot - 1];
	site = &s->pysite[s->n_pysites++];
	*slot = (uint32_t)s->n_pysites;
	*site = (struct python_site){
		.target = target,
		.module = text_dup(module),
		.symbol = text_dup(symbol),
	};
	return site;
}

static void take_note(struct inject_session *s, const struct page_note *note)
{
	struct python_site *site;

	if (note->cell >= s->n_targets || s->target[note->cell].spec->kind != SPEC_PYTHON)
		return;
	site = site_of(s, note->cell, note->module, note->symbol);
	if (!site->file) {
		site->file = text_dup(note->file);
		site->line = note->line;
	}
	if (site->n_pids < PIDS_SHOWN)
		result_add_pid(&site->pids, &site->n_pids, (pid_t)note->pid);
	site->each = each_number(s, note->cell, note->module, note->symbol, 0);
	s->target[note->cell].planted = true;
}

/* Continues where the last look ended. */
void python_notes(struct inject_session *s, struct record *rec)
{
	struct control *control = rec->space ? rec->space->control : NULL;
	struct page_note note = { 0 };

	if (!control || !python_wanted(s))
		return;
	note.at = control->notes_read;
	while (page_next_note(&control->page, &note))
		take_note(s, &note);
	control->notes_read = note.at;
	page_note_done(&note);
}

void python_sites(struct inject_session *s, size_t target, const uint64_t *each,
		  struct result_target *rt)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			python_notes(s, rec);
	for (size_t i = 0; i < s->n_pysites; i++) {
		const struct python_site *from = &s->pysite[i];
		struct result_site *to;

		if (from->target != target)
			continue;
		rt->site = realloc(rt->site, (rt->n_sites + 1) * sizeof(*rt->site));
		if (!rt->site)
			abort();
		to = &rt->site[rt->n_sites++];
		*to = (struct result_site){
			.module = text_dup(from->module),
			.symbol = text_dup(from->symbol),
			.name = text_dup(from->symbol),
			.file = text_dup(from->file),
			.line = from->line,
			.mechanism = text_dup("python"),
			.each = each && from->each,
			.hits = each && from->each ? each[from->each - 1] : 0,
		};
		for (size_t k = 0; k < from->n_pids; k++)
			result_add_pid(&to->pids, &to->n_pids, from->pids[k]);
	}
}

void python_sites_free(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_pysites; i++) {
		free(s->pysite[i].module);
		free(s->pysite[i].symbol);
		free(s->pysite[i].file);
		free(s->pysite[i].pids);
	}
	free(s->pysite);
	free(s->pysite_slot);
}
