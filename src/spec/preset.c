/* SPDX-License-Identifier: MIT */
/* The text of a preset to rows, and a word to some of them. preset-file.c finds the text. */
#include "preset.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "elf/suggest.h"
#include "elf/symbol.h"
#include "src/base/must.h"
#include "src/base/text.h"

#define BLANKS " \t\r\f\v"

enum { ROWS_MAX = 4096, NAME_MAX_LEN = 32 };

static const char *const kind_names[] = {
	[PRESET_LAUNCH] = "launch",	  [PRESET_MEMCPY] = "memcpy",
	[PRESET_MEMSET] = "memset",	  [PRESET_ALLOC] = "alloc",
	[PRESET_FREE] = "free",		  [PRESET_SYNC] = "sync",
	[PRESET_GRAPH] = "graph",	  [PRESET_EVENT] = "event",
	[PRESET_MODULE] = "module",	  [PRESET_LOCK] = "lock",
	[PRESET_RDLOCK] = "rdlock",	  [PRESET_TRYLOCK] = "trylock",
	[PRESET_TRYRDLOCK] = "tryrdlock", [PRESET_UNLOCK] = "unlock",
	[PRESET_CONDWAIT] = "condwait",	  [PRESET_LOCKINIT] = "lockinit",
	[PRESET_OTHER] = "other",
};

const char *preset_kind_name(enum preset_kind kind)
{
	return kind_names[kind];
}

static int kind_of(const char *name, size_t len)
{
	for (int i = 0; i < PRESET_KINDS; i++)
		if (strlen(kind_names[i]) == len && !memcmp(kind_names[i], name, len))
			return i;
	return -1;
}

bool preset_is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
			return false;
	return len && len <= NAME_MAX_LEN;
}

/* ---- the text ---- */

/* One more word of the line; NULL: there is none. */
static char *take_word(const char **s, const char *end)
{
	const char *start;

	while (*s < end && strchr(BLANKS, **s))
		++*s;
	start = *s;
	while (*s < end && !strchr(BLANKS, **s))
		++*s;
	return *s > start ? must(strndup(start, (size_t)(*s - start))) : NULL;
}

static void kinds_hint(struct sb_err *err)
{
	char text[160] = "";
	size_t n = 0;

	for (int i = 0; i < PRESET_KINDS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? ", " : "",
				      kind_names[i]);
	err_hint(err, "the kinds are %s", text);
}

static int take_keys(struct preset_row *row, const char **s, const char *end, struct sb_err *err)
{
	char quoted[TEXT_QUOTE_SIZE], *word;

	while ((word = take_word(s, end))) {
		row->key = must_realloc(row->key, (row->n_keys + 1) * sizeof(*row->key));
		row->key[row->n_keys++] = word;
		if (strchr(word, '=') || !strcmp(word, "ret"))
			continue;
		err_set(err, SB_ESPEC, "'%s' is not KEY=VALUE",
			text_quote(word, quoted, sizeof(quoted)));
		err_hint(err, "a row is KIND FUNCTION MODULE [KEY=VALUE]...");
		return -SB_ESPEC;
	}
	return 0;
}

static int take_row(struct preset *p, const char *s, const char *end, unsigned int line,
		    struct sb_err *err)
{
	char quoted[TEXT_QUOTE_SIZE], *kind = take_word(&s, end);
	struct preset_row *row;
	int k;

	if (!kind)
		return 0;
	p->row = must_realloc(p->row, (p->n_rows + 1) * sizeof(*p->row));
	row = &p->row[p->n_rows++];
	*row = (struct preset_row){ .line = line };
	row->function = take_word(&s, end);
	row->module = take_word(&s, end);
	k = kind_of(kind, strlen(kind));
	if (k < 0) {
		err_set(err, SB_ESPEC, "'%s' is not a kind",
			text_quote(kind, quoted, sizeof(quoted)));
		kinds_hint(err);
	}
	free(kind);
	if (k < 0)
		return -SB_ESPEC;
	row->kind = (enum preset_kind)k;
	if (!row->module || p->n_rows > ROWS_MAX || strchr(row->module, ':')) {
		err_set(err, SB_ESPEC, "%s",
			p->n_rows > ROWS_MAX ? "a preset has at most 4096 rows" :
			row->module	     ? "a module has no ':' in its name" :
					       "a row lacks its function or its module");
		err_hint(err, "a row is KIND FUNCTION MODULE [KEY=VALUE]...");
		return -SB_ESPEC;
	}
	for (size_t i = 0; i + 1 < p->n_rows; i++)
		if (!strcmp(p->row[i].function, row->function))
			return err_set(err, SB_ESPEC, "'%s' has a row already: line %u",
				       text_quote(row->function, quoted, sizeof(quoted)),
				       p->row[i].line);
	return take_keys(row, &s, end, err);
}

static int take_lines(struct preset *p, const char *text, const char *end, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	const char *stop, *hash;
	int rc = 0;

	for (unsigned int line = 1; text < end && !rc; line++) {
		stop = memchr(text, '\n', (size_t)(end - text));
		stop = stop ? stop : end;
		hash = memchr(text, '#', (size_t)(stop - text));
		if (memchr(text, '\0', (size_t)(stop - text)))
			rc = err_set(err, SB_ESPEC, "a NUL byte: this is not a text file");
		else
			rc = take_row(p, text, hash ? hash : stop, line, err);
		if (rc)
			err_prefix(err, "%s:%u", text_quote(p->path, shown, sizeof(shown)), line);
		text = stop + (stop < end);
	}
	if (rc || p->n_rows)
		return rc;
	return err_set(err, SB_ESPEC, "%s: no row in it",
		       text_quote(p->path, shown, sizeof(shown)));
}

void preset_free(struct preset *p)
{
	for (size_t i = 0; i < p->n_rows; i++) {
		for (size_t k = 0; k < p->row[i].n_keys; k++)
			free(p->row[i].key[k]);
		free(p->row[i].key);
		free(p->row[i].function);
		free(p->row[i].module);
	}
	free(p->row);
	free(p->name);
	free(p->path);
	free(p);
}

int preset_parse(const char *text, size_t len, const char *name, const char *path,
		 struct preset **out, struct sb_err *err)
{
	struct preset *p = must_calloc(1, sizeof(*p));
	int rc;

	p->name = text_dup(name);
	p->path = text_dup(path);
	rc = take_lines(p, text, text + len, err);
	if (rc) {
		preset_free(p);
		return rc;
	}
	for (size_t i = 0; i < p->n_rows; i++)
		p->row[i].preset = p;
	*out = p;
	return 0;
}

/* ---- words ---- */

/* The row of a function: the one that is written so, else the first one that matches it. */
static size_t row_of(const struct preset *p, const char *what)
{
	for (size_t i = 0; i < p->n_rows; i++)
		if (!strcmp(p->row[i].function, what))
			return i;
	for (size_t i = 0; i < p->n_rows; i++)
		if (!glob_is_pattern(what) && symbol_is_version(p->row[i].function, what))
			return i;
	return SIZE_MAX;
}

/* A function that only a pattern knows is a misspelt one where another row has nearly its name. */
static bool offer_near(const struct preset *p, const char *what, size_t stem, size_t row,
		       char *near, size_t size)
{
	struct suggester s;

	*near = '\0';
	if (!suggest_init(&s, what, stem))
		return false;
	if (row < p->n_rows)
		s.limit = 2;
	for (int i = 0; i < PRESET_KINDS && row == SIZE_MAX; i++)
		suggest_offer(&s, kind_names[i], strlen(kind_names[i]));
	for (size_t i = 0; i < p->n_rows; i++)
		if (!glob_is_pattern(p->row[i].function))
			suggest_offer(&s, p->row[i].function, strlen(p->row[i].function));
	for (size_t i = s.count; row < p->n_rows && i-- > 0;)
		if (s.best[i].far > s.limit) /* its name is a part of another one only */
			free(s.best[--s.count].text);
	suggest_print(&s, near, size);
	return *near;
}

static int refuse_word(const struct preset *p, const char *what, size_t row, const char *near,
		       struct sb_err *err)
{
	char quoted[TEXT_QUOTE_SIZE];

	text_quote(what, quoted, sizeof(quoted));
	err_set(err, SB_ESPEC, "preset '%s' has no kind and no function '%s'", p->name, quoted);
	if (row < p->n_rows)
		err_hint(err, "%s If a function is really called so: %s:%s", near,
			 p->row[row].module, quoted);
	else if (*near)
		err_hint(err, "%s For a file of the name %s: '*/%s:...'", near, p->name, p->name);
	else
		err_hint(err,
			 "sbinject list -p PID %s shows its functions; for a file of the name "
			 "%s: '*/%s:...'",
			 p->name, p->name, p->name);
	return -SB_ESPEC;
}

int preset_choose(const struct preset *p, const char *what, struct preset_choice *choice,
		  struct sb_err *err)
{
	char near[160];
	bool pattern;

	*choice = (struct preset_choice){ .preset = p, .what = what, .kind = -1, .row = SIZE_MAX };
	if (!what)
		return 0;
	choice->kind = kind_of(what, strlen(what));
	choice->stem = symbol_version_stem(what);
	if (choice->kind >= 0) {
		for (size_t i = 0; i < p->n_rows; i++)
			if ((int)p->row[i].kind == choice->kind)
				return 0;
		err_set(err, SB_ESPEC, "preset '%s' has no function of kind %s", p->name, what);
		err_hint(err, "sbinject list -p PID %s shows its functions", p->name);
		return -SB_ESPEC;
	}
	choice->row = row_of(p, what);
	pattern = choice->row < p->n_rows && glob_is_pattern(p->row[choice->row].function);
	choice->narrower = pattern && strcmp(p->row[choice->row].function, what) != 0;
	if (choice->row == SIZE_MAX || choice->narrower) {
		bool any = offer_near(p, what, choice->stem, choice->row, near, sizeof(near));

		if (choice->row == SIZE_MAX || any)
			return refuse_word(p, what, choice->row, near, err);
	}
	return 0;
}

bool preset_takes(const struct preset_choice *c, size_t row)
{
	return c->row < SIZE_MAX ? row == c->row :
	       c->kind >= 0	 ? (int)c->preset->row[row].kind == c->kind :
				   true;
}
