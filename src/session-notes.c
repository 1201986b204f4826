/* SPDX-License-Identifier: MIT */
/* What agents note of the functions that they found: out of a page, into the result. */
#include <stdlib.h>
#include <string.h>
#include "session-python.h"
#include "text.h"

enum { PIDS_SHOWN = 1000 };

/* A function of Python's, as often as it was found in processes. */
struct python_site {
	size_t target;
	char *module, *symbol, *file;
	uint32_t line;
	uint32_t each; /* number of its own counter, 0: none */
	pid_t *pids;
	size_t n_pids;
};

static struct python_site *site_of(struct session *s, size_t target, const char *module,
				   const char *symbol)
{
	struct python_site *site;

	for (size_t i = 0; i < s->n_pysites; i++) {
		site = &s->pysite[i];
		if (site->target == target && !strcmp(site->module, module) &&
		    !strcmp(site->symbol, symbol))
			return site;
	}
	s->pysite = realloc(s->pysite, (s->n_pysites + 1) * sizeof(*s->pysite));
	if (!s->pysite)
		abort();
	site = &s->pysite[s->n_pysites++];
	*site = (struct python_site){
		.target = target,
		.module = text_dup(module),
		.symbol = text_dup(symbol),
	};
	return site;
}

static void take_note(struct session *s, const struct page_note *note)
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

/* From where the last look ended. */
void python_notes(struct session *s, struct record *rec)
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

void python_sites(struct session *s, size_t target, const uint64_t *each, struct result_target *rt)
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

void python_sites_free(struct session *s)
{
	for (size_t i = 0; i < s->n_pysites; i++) {
		free(s->pysite[i].module);
		free(s->pysite[i].symbol);
		free(s->pysite[i].file);
		free(s->pysite[i].pids);
	}
	free(s->pysite);
}
