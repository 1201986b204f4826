/* SPDX-License-Identifier: MIT */
/* args=yes: the arguments of a target's functions, as their debug information has them. */
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "elf/symbol.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/spec/value.h"

enum { FUNCTIONS_MAX = 64 };

struct arguments {
	char *first; /* words of the first function, which the target's values are made of */
	struct known {
		struct image *img; /* counted reference */
		uint64_t vaddr;
		char *text; /* symbol_arguments()'; NULL: see why */
		struct sb_err why;
	} known[FUNCTIONS_MAX];
	size_t n;
};

static void leave_out(struct target *t, const char *name, const char *why)
{
	char *text;

	if (t->left_out)
		return;
	must(asprintf(&text, "%s: %s", name, why) < 0 ? NULL : text);
	t->left_out = text;
}

/* words: as arg= takes them. They come from a file that may be hostile: each is read as a user's
 * is. */
static void take_words(struct target *t, char *words, const char *function)
{
	struct spec values = *t->own;
	char *save, *word;

	values.arguments = false;
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char shown[TEXT_QUOTE_SIZE], why[TEXT_QUOTE_SIZE + 64];

		if (values.n_values < VALUE_MAX && !value_arg(&values, word))
			continue;
		word[strcspn(word, ":")] = '\0';
		snprintf(why, sizeof(why), "argument %s is left out: a call has at most %d values",
			 text_quote(word, shown, sizeof(shown)), VALUE_MAX);
		leave_out(t, function, why);
		break;
	}
	memcpy(t->own->value, values.value, sizeof(values.value));
	/* Others may look at the values that there are: the search runs beside them. */
	__atomic_store_n(&t->own->n_values, values.n_values, __ATOMIC_RELEASE);
}

static int refuse(const char *function, const char *why, const char *remedy, struct sb_err *err)
{
	err_set(err, SB_EREFUSED, "args=yes: %.200s: %s", function, why);
	err_hint(err, "%s", remedy);
	return -SB_EREFUSED;
}

/* words: symbol_arguments()' text. */
static int take(struct target *t, const char *function, const char *words, struct sb_err *err)
{
	struct arguments *a = t->arguments;
	size_t len = strcspn(words, "\n");
	char *text;

	if (a->first && (strlen(a->first) != len || memcmp(a->first, words, len) != 0))
		return refuse(function,
			      "its arguments are not those of the first function of the target",
			      "name the functions one by one, each with args=yes", err);
	if (a->first)
		return 0;
	a->first = must(strndup(words, len));
	text = must_strdup(a->first);
	take_words(t, text, function);
	free(text);
	if (words[len])
		leave_out(t, function, words + len + 1);
	t->arguments_new = true;
	return 0;
}

/* A file has so much time for all searches of it, so each function is searched for once. */
static const struct known *look_up(struct arguments *a, const struct resolve_site *rs)
{
	uint64_t vaddr = rs->addr - rs->bias;
	struct known *k = a->known;

	while (k < a->known + a->n && (k->img != rs->img || k->vaddr != vaddr))
		k++;
	if (k < a->known + a->n)
		return k;
	if (a->n == FUNCTIONS_MAX)
		return NULL;
	a->n++;
	k->img = image_ref(rs->img);
	k->vaddr = vaddr;
	if (symbol_arguments(rs->img, vaddr, rs->name, &k->text, &k->why) < 0)
		k->text = NULL;
	return k;
}

int target_arguments(struct target *t, const struct resolve_site *rs, struct sb_err *err)
{
	char *shown = must(symbol_shown(rs->name));
	const struct known *k;
	int ret;

	if (!t->arguments)
		t->arguments = must_calloc(1, sizeof(*t->arguments));
	k = look_up(t->arguments, rs);
	if (!k)
		ret = refuse(shown, "the pattern matches more than 64 functions",
			     "name fewer functions for args=yes", err);
	else if (!k->text)
		ret = refuse(shown, k->why.what, err_remedy(&k->why), err);
	else
		ret = take(t, shown, k->text, err);
	free(shown);
	return ret;
}

void target_arguments_free(struct target *t)
{
	struct arguments *a = t->arguments;

	for (size_t i = 0; a && i < a->n; i++) {
		image_put(a->known[i].img);
		free(a->known[i].text);
	}
	if (a)
		free(a->first);
	free(a);
	free(t->left_out);
	t->arguments = NULL;
	t->left_out = NULL;
	t->arguments_new = false;
}
