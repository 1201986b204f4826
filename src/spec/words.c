/* SPDX-License-Identifier: MIT */
/*
 * Words to targets, in one pass. Each word is a key, a target, a delay, or an error, tested in this
 * order (thread=a:b is a key, 7z.so:main a target), and belongs to the targets before it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "value.h"
#include "src/base/text.h"

struct group {
	struct spec_list *list;
	bool any;	   /* a target was named */
	size_t first;	   /* from this one on: the targets that a delay or key belongs to */
	unsigned int seen; /* bits of its keys; bit SPEC_NO_KEY: its delay */
	struct sb_err *err;
};

/* One more target, all zero; NULL: no memory. */
static struct spec *list_grow(struct spec_list *list)
{
	struct spec *grown = list->spec;

	/* The size is a power of two: it grows whenever the count reaches one. */
	if (!(list->count & (list->count - 1)))
		grown = reallocarray(list->spec, list->count ? list->count * 2 : 1, sizeof(*grown));
	if (!grown)
		return NULL;
	list->spec = grown;
	grown[list->count] = (struct spec){ .delay_ns = SPEC_DELAY_UNSET };
	return &grown[list->count++];
}

static void group_begin(struct group *group)
{
	group->first = group->list->count;
	group->any = true;
	group->seen = 0;
}

static bool is_value_key(size_t key)
{
	static const char *const names[] = { "arg", "ret", "sum" };
	bool is = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		is |= !strcmp(spec_key(key)->name, names[i]);
	return is;
}

/* The keys that a preset gives a function. */
static int row_keys(const struct preset_row *row, struct spec *spec, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	int rc = 0;

	for (size_t i = 0; i < row->n_keys && !rc; i++) {
		size_t key = spec_key_find(row->key[i]);
		const char *why = NULL;

		if (!strncmp(row->key[i], "result=", 7))
			why = value_result(spec, row->key[i] + 7);
		else if (!strncmp(row->key[i], "text=", 5))
			why = value_text_argument(spec, row->key[i] + 5);
		else if (key >= SPEC_NO_KEY)
			rc = spec_refuse_key(err, row->key[i], "is unknown");
		else if (!is_value_key(key))
			rc = spec_refuse_key(err, row->key[i],
					     "is not arg=, ret, sum=, result= or text=");
		else
			rc = spec_key_read(spec, key, row->key[i], err);
		if (why)
			rc = spec_refuse_key(err, row->key[i], why);
	}
	if (rc)
		err_prefix(err, "%s:%u", text_quote(row->preset->path, shown, sizeof(shown)),
			   row->line);
	/* Without times they would cost each call something that no output shows. */
	spec->n_row_values = spec->n_values;
	spec->n_values = 0;
	spec->timed = false;
	return rc;
}

void spec_take_row(struct spec *spec)
{
	if (spec->row && spec->timed && !spec->n_values && !spec->arguments && !spec->at &&
	    !spec->inlined)
		spec->n_values = spec->n_row_values;
}

static bool is_named(const struct spec_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->spec[i].row && !list->spec[i].pid && !strcmp(list->spec[i].text, text))
			return true;
	return false;
}

static int group_row(struct group *group, const struct preset_choice *choice, size_t i)
{
	const struct preset_row *row = &choice->preset->row[i];
	bool list = choice->row == SIZE_MAX;
	struct spec *spec;
	char *text;

	if (asprintf(&text, "%s:%.*s", choice->preset->name,
		     choice->narrower ? (int)choice->stem : INT_MAX,
		     choice->narrower ? choice->what : row->function) < 0)
		return spec_refuse_memory(group->err);
	if (list && is_named(group->list, text)) {
		free(text);
		return 0;
	}
	spec = list_grow(group->list);
	if (!spec) {
		free(text);
		return spec_refuse_memory(group->err);
	}
	spec->text = text;
	spec->text_len = strlen(text);
	spec->row = row;
	spec->listed = list;
	spec->follows = group->list->count - 1 > group->first;
	spec->module = strdup(row->module);
	spec->symbol = strdup(strchr(text, ':') + 1);
	if (!spec->module || !spec->symbol)
		return spec_refuse_memory(group->err);
	return row_keys(row, spec, group->err);
}

static int group_preset(struct group *group, const struct preset *preset, const char *what)
{
	struct preset_choice choice;
	int rc = preset_choose(preset, what, &choice, group->err);

	group_begin(group);
	for (size_t i = 0; i < preset->n_rows && !rc; i++)
		if (preset_takes(&choice, i))
			rc = group_row(group, &choice, i);
	if (rc || group->list->count > group->first)
		return rc;
	return spec_refuse(group->err, "preset", preset->name,
			   "names only functions that words before it have",
			   "leave it out, or give it first");
}

/* The preset that a word names, if any; *what: behind its ':'. MODULE:=SYMBOL and MODULE:@FILE:LINE
 * always mean a module. */
static int find_preset(const char *word, const struct preset **preset, const char **what,
		       struct sb_err *err)
{
	size_t len = strcspn(word, ":");

	*preset = NULL;
	*what = word[len] ? word + len + 1 : NULL;
	if (!preset_is_name(word, len) || (len == 2 && !memcmp(word, "py", 2)) ||
	    (*what && (!**what || strchr("=@:", **what))))
		return 0;
	return preset_get(word, len, preset, err);
}

static int group_target(struct group *group, const char *word)
{
	const struct preset *preset;
	const char *what;
	struct spec *spec;
	int rc = find_preset(word, &preset, &what, group->err);

	if (rc)
		return rc;
	if (preset)
		return group_preset(group, preset, what);
	group_begin(group);
	spec = list_grow(group->list);
	return spec ? spec_target_parse(spec, word, group->err) : spec_refuse_memory(group->err);
}

/* For delays and keys: there must be a target, and it must not have one of this kind yet. */
static int group_claim(struct group *group, size_t bit, const char *what, const char *word)
{
	if (!group->any)
		return spec_refuse(group->err, what, word, "stands before any target",
				   spec_form_hint);
	if (group->seen & 1u << bit && bit == SPEC_NO_KEY)
		return spec_refuse(
			group->err, what, word, "is given twice for one target",
			"one delay a target; several targets each take their own after them");
	if (group->seen & 1u << bit && !spec_key_repeats(bit))
		return spec_refuse_key(group->err, word, "is given twice for one target");
	group->seen |= 1u << bit;
	return 0;
}

static int group_key(struct group *group, size_t key, const char *word)
{
	int rc = group_claim(group, key, "the key", word);

	for (size_t i = group->first; i < group->list->count && !rc; i++)
		rc = spec_key_read(&group->list->spec[i], key, word, group->err);
	return rc;
}

static int group_delay(struct group *group, const char *word)
{
	int rc = group_claim(group, SPEC_NO_KEY, "the delay", word);

	for (size_t i = group->first; i < group->list->count && !rc; i++)
		rc = spec_delay(word, &group->list->spec[i].delay_ns, group->err);
	return rc;
}

/* A digit or a point at the start, possibly behind a sign: a sign is refused later, with its
 * name. */
static bool looks_like_delay(const char *word)
{
	word += *word == '-' || *word == '+';
	return *word && strchr("0123456789.", *word);
}

/* A word without a ':': a preset, or an error. */
static int group_name(struct group *group, const char *word)
{
	const struct preset *preset;
	const char *what;
	char names[160];
	int rc = find_preset(word, &preset, &what, group->err);

	if (rc)
		return rc;
	if (preset)
		return group_preset(group, preset, NULL);
	rc = spec_refuse(group->err, "the word", word,
			 group->any ? "is neither a target nor a delay nor a key" :
				      "is neither a verb (sbinject --help lists them) nor a target",
			 spec_form_hint);
	preset_names(names, sizeof(names));
	if (*names)
		err_hint(group->err, "%s; presets are %s", spec_form_hint, names);
	return rc;
}

static int group_word(struct group *group, const char *word)
{
	size_t key = spec_key_find(word);

	if (key < SPEC_NO_KEY)
		return group_key(group, key, word);
	if (strchr(word, ':'))
		return group_target(group, word);
	if (looks_like_delay(word))
		return group_delay(group, word);
	if (strchr(word, '='))
		return spec_refuse_key(group->err, word, "is unknown");
	return group_name(group, word);
}

/* The last character is compared first: texts often share their beginning, the module. */
static bool spec_same(const struct spec *a, const struct spec *b)
{
	return a->text_len == b->text_len && a->pid == b->pid &&
	       a->text[a->text_len - 1] == b->text[b->text_len - 1] &&
	       !memcmp(a->text, b->text, a->text_len);
}

/* Is any target from `first` on a duplicate of an earlier one? */
static int list_check_twice(const struct spec_list *list, size_t first, struct sb_err *err)
{
	for (size_t i = first; i < list->count; i++)
		for (size_t j = 0; j < i; j++)
			if (spec_same(&list->spec[i], &list->spec[j]))
				return spec_refuse(
					err, "target", list->spec[i].text, "is given twice",
					"give it once; two targets may differ by pid=, and "
					"thread= takes a glob");
	return 0;
}

void spec_list_cut(struct spec_list *list, size_t count)
{
	while (list->count > count)
		spec_clear(&list->spec[--list->count]);
}

void spec_list_join(struct spec_list *list, struct spec_list *more)
{
	for (size_t i = 0; i < more->count; i++) {
		struct spec *spec = list_grow(list);

		if (!spec)
			abort();
		*spec = more->spec[i];
	}
	more->count = 0;
}

int spec_parse_words(char *const *words, size_t count, struct spec_list *out, struct sb_err *err)
{
	size_t before = out->count;
	struct group group = { .list = out, .err = err };
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = group_word(&group, words[i]);
	if (!rc)
		rc = list_check_twice(out, before, err);
	if (rc)
		spec_list_cut(out, before);
	return rc;
}

void spec_list_free(struct spec_list *list)
{
	spec_list_cut(list, 0);
	free(list->spec);
	*list = (struct spec_list){ 0 };
}
