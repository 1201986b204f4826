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
	pid_t *pids;
	size_t n_pids;
};

/* The text of a note, NUL by NUL; NULL where it does not hold together. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

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

/* note is a copy, `size` bytes whole. */
static void take_note(struct session *s, const struct sb_page_note *note)
{
	const char *at = note->text, *end = (const char *)note + note->size;
	const char *module = next_text(&at, end), *symbol = module ? next_text(&at, end) : NULL;
	const char *file = symbol ? next_text(&at, end) : NULL;
	struct python_site *site;

	if (!file || note->cell >= s->n_targets || s->target[note->cell].spec->kind != SPEC_PYTHON)
		return;
	site = site_of(s, note->cell, module, symbol);
	if (!site->file) {
		site->file = text_dup(file);
		site->line = note->line;
	}
	if (site->n_pids < PIDS_SHOWN)
		result_add_pid(&site->pids, &site->n_pids, (pid_t)note->pid);
	s->target[note->cell].planted = true;
}

/* From where the last look ended. The area can be written by the target at any time. */
void python_notes(struct session *s, struct record *rec)
{
	struct control *control = rec->space ? rec->space->control : NULL;
	const struct sb_page_header *lay;
	const char *area;
	uint64_t used;

	if (!control || !python_wanted(s))
		return;
	lay = &control->page.lay;
	area = (const char *)control->page.hdr + lay->notes_off;
	used = __atomic_load_n(&control->page.hdr->notes_used, __ATOMIC_ACQUIRE);
	if (used > lay->notes_size)
		used = lay->notes_size;
	while (control->notes_read + sizeof(struct sb_page_note) <= used) {
		const struct sb_page_note *shared = (const void *)(area + control->notes_read);
		uint32_t size = __atomic_load_n(&shared->size, __ATOMIC_ACQUIRE);
		struct sb_page_note *copy;

		if (size < sizeof(*shared) || size % 8 || size > used - control->notes_read)
			return;
		copy = malloc(size);
		if (!copy)
			abort();
		memcpy(copy, shared, size);
		copy->size = size;
		take_note(s, copy);
		free(copy);
		control->notes_read += size;
	}
}

void python_sites(struct session *s, size_t target, struct result_target *rt)
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
