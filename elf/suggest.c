/* SPDX-License-Identifier: MIT */
/* Near names for an error's hint. It runs once, on the way to an error, over 200000 names. */
#include "demangle.h"
#include "here.h"
#include "image-priv.h"
#include "suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* The state of one walk over the tables of an image. */
struct walk {
	struct suggester *near;
	const struct image *img;
	bool demangle;
};

static char lower(char c)
{
	return (char)tolower((unsigned char)c);
}

/* Which characters there are, a bit for each five low bits of one: without regard to case. */
static unsigned int characters(const char *text, size_t len)
{
	unsigned int set = 0;

	while (len)
		set |= 1u << (text[--len] & 31);
	return set;
}

/* Edit distance without regard to case, or limit + 1 as soon as it is certainly larger. */
static unsigned int distance(const char *a, size_t alen, const char *b, size_t blen,
			     unsigned int limit)
{
	unsigned int row[SUGGEST_LENGTH + 1];

	if (alen > blen + limit || blen > alen + limit)
		return limit + 1;
	/* What b lacks takes an edit for each character; most names differ by more of them. */
	if ((unsigned int)__builtin_popcount(characters(a, alen) & ~characters(b, blen)) > limit)
		return limit + 1;
	for (size_t j = 0; j <= blen; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= alen; i++) {
		unsigned int diagonal = row[0], least;

		least = row[0] = (unsigned int)i;
		for (size_t j = 1; j <= blen; j++) {
			unsigned int cost = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));

			diagonal = row[j];
			if (cost > row[j] + 1)
				cost = row[j] + 1;
			if (cost > row[j - 1] + 1)
				cost = row[j - 1] + 1;
			row[j] = cost;
			least = cost < least ? cost : least;
		}
		if (least > limit)
			return limit + 1;
	}
	return row[blen];
}

/* A name with more text only before or after it ("cuMemAlloc_v2") is near, whatever the length. */
static unsigned int how_far(const struct suggester *s, const char *text, size_t len)
{
	unsigned int far = s->limit + 1;

	if (len <= SUGGEST_LENGTH)
		far = distance(s->name, s->len, text, len, s->limit);
	if (far > s->limit && s->len >= 4 && len <= s->len * 3 &&
	    memmem(text, len, s->name, s->len))
		far = s->limit + (unsigned int)(len - s->len) / 8;
	else if (far > s->limit)
		far = UINT32_MAX;
	return far;
}

static bool is_known(const struct suggester *s, const char *text, size_t len)
{
	for (size_t i = 0; i < s->count; i++)
		if (strlen(s->best[i].text) == len && memcmp(s->best[i].text, text, len) == 0)
			return true;
	return false;
}

void suggest_offer(struct suggester *s, const char *text, size_t len)
{
	unsigned int far = how_far(s, text, len);
	size_t at = s->count;

	if (far == UINT32_MAX || is_known(s, text, len))
		return;
	while (at > 0 && s->best[at - 1].far > far)
		at--;
	if (at == SUGGEST_BEST)
		return;
	if (s->count == SUGGEST_BEST)
		free(s->best[--s->count].text);
	memmove(&s->best[at + 1], &s->best[at], (s->count - at) * sizeof(s->best[0]));
	s->best[at] = (struct suggestion){ strndup(text, len), far };
	s->count++;
	if (s->best[at].text)
		return;
	s->count--;
	memmove(&s->best[at], &s->best[at + 1], (s->count - at) * sizeof(s->best[0]));
}

static bool consider(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct walk *w = ctx;
	const char *name = symtab_name(tab, sym);
	char *text;

	(void)i;
	if (!image_is_function(w->img, sym, false))
		return true;
	if (!w->demangle) {
		suggest_offer(w->near, name, strcspn(name, "@"));
		return true;
	}
	text = demangle_name(name, DEMANGLE_NO_RETURN);
	if (text) {
		demangle_cut_parameters(text);
		suggest_offer(w->near, text, strlen(text));
	}
	free(text);
	return true;
}

static void consider_all(struct walk *w, struct image *img, const char *containing)
{
	w->img = img;
	for (enum image_table t = 0; t < TABLE_COUNT; t++) {
		const struct symtab *tab = image_table(img, t);
		struct strset set;

		if (!tab)
			continue;
		if (!containing) {
			symtab_scan(tab, NULL, consider, w);
		} else if (strset_containing(&set, tab, containing) == 0) {
			symtab_scan(tab, &set, consider, w);
			strset_free(&set);
		}
	}
}

/* The longest identifier of a C++ or Rust name: a near name contains it, or is not found. */
static void longest_word(const char *name, char *word, size_t size)
{
	size_t best = 0;

	while (*name) {
		size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789_");

		if (len > best && len < size) {
			memcpy(word, name, len);
			word[len] = '\0';
			best = len;
		}
		name += len ? len : 1;
	}
}

void suggest_print(struct suggester *s, char *buf, size_t size)
{
	size_t used = 0;

	*buf = '\0';
	for (size_t i = 0; i < s->count; i++) {
		size_t left = size - used;
		int n = snprintf(buf + used, left, "%s'%s'", i ? ", " : "did you mean ",
				 s->best[i].text);

		/* Leaves out a name that does not fit with the question mark behind it. */
		if (n < 0 || (size_t)n + 1 >= left) {
			buf[used] = '\0';
			break;
		}
		used += (size_t)n;
	}
	if (used)
		strcpy(buf + used, "?");
	for (size_t i = 0; i < s->count; i++)
		free(s->best[i].text);
	s->count = 0;
}

bool suggest_init(struct suggester *s, const char *name, size_t len)
{
	*s = (struct suggester){ .name = name, .len = len };
	s->limit = (unsigned int)(len / 4 + 1 < 5 ? len / 4 + 1 : 5);
	return len && len <= SUGGEST_LENGTH;
}

bool suggest_name(struct suggester *s, const char *name)
{
	return suggest_init(s, name, strcspn(name, "@+(")) && !strpbrk(name, "*?");
}

void here_suggest(struct image *img, struct suggester *near)
{
	struct walk w = { .near = near, .demangle = strstr(near->name, "::") };
	char word[64] = "";

	longest_word(near->name, word, sizeof(word));
	if (*word || !w.demangle)
		consider_all(&w, img, w.demangle ? word : NULL);
}
