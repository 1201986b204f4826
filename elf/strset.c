/* SPDX-License-Identifier: MIT */
#include "symtab.h"

#include <stdlib.h>

/* The string table is read in pieces that are released, so that 100 MB are never resident. */
#define PIECE (2u << 20)

#define BLOCK_SHIFT 6

static bool set_init(struct strset *set, const struct symtab *tab)
{
	*set = (struct strset){ 0 };
	set->block_words = (tab->str.size >> BLOCK_SHIFT) / 64 + 1;
	set->blocks = calloc(set->block_words, sizeof(*set->blocks));
	return set->blocks;
}

void strset_free(struct strset *set)
{
	free(set->span);
	free(set->blocks);
	*set = (struct strset){ 0 };
}

static void mark_blocks(struct strset *set, uint32_t lo, uint32_t hi)
{
	for (uint32_t b = lo >> BLOCK_SHIFT; b <= hi >> BLOCK_SHIFT; b++)
		set->blocks[b / 64] |= 1ull << b % 64;
}

/* Hits are in ascending order; one in the string of the last one extends that span. */
static void add_span(struct strset *set, uint32_t lo, uint32_t hi)
{
	struct strset_span *last = set->count ? &set->span[set->count - 1] : NULL;

	if (last && last->lo == lo) {
		mark_blocks(set, last->hi, hi);
		last->hi = hi;
		return;
	}
	if (set->count == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 64;
		struct strset_span *more = realloc(set->span, cap * sizeof(*more));

		if (!more) {
			set->failed = true;
			return;
		}
		set->span = more;
		set->cap = cap;
	}
	if (!set->span) /* impossible: cap was 0 and grew */
		return;
	set->span[set->count++] = (struct strset_span){ lo, hi };
	mark_blocks(set, lo, hi);
}

bool strset_has(const struct strset *set, uint32_t off)
{
	size_t b = off >> BLOCK_SHIFT, lo = 0, hi = set->count;

	if (b / 64 >= set->block_words || !(set->blocks[b / 64] >> b % 64 & 1))
		return false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (set->span[mid].hi < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < set->count && set->span[lo].lo <= off;
}

/* ---- filling ---- */

struct search {
	struct strset *set;
	const struct symtab *tab;
	const char *text;
	size_t len;
	bool exact;
	size_t string_start; /* of the string that holds seen */
	size_t seen;	     /* everything below was searched for a string's end */
};

/* Searches back only as far as the last hit, so that one endless string does not cost n^2. */
static size_t start_of_string(struct search *s, size_t at)
{
	const uint8_t *str = s->tab->str.bytes;
	const uint8_t *nul = memrchr(str + s->seen, '\0', at - s->seen);

	if (nul)
		s->string_start = (size_t)(nul - str) + 1;
	s->seen = at;
	return s->string_start;
}

static void take_hit(struct search *s, size_t at)
{
	uint8_t next = s->tab->str.bytes[at + s->len];

	if (!s->exact)
		add_span(s->set, (uint32_t)start_of_string(s, at), (uint32_t)at);
	else if (next == '\0' || next == '@')
		add_span(s->set, (uint32_t)at, (uint32_t)at);
}

static int search_all(struct search *s)
{
	const uint8_t *str = s->tab->str.bytes;
	/* The last byte is the NUL, which the text cannot contain: take_hit() may look behind. */
	size_t end = s->tab->str.size - 1, at = 0, piece = 0;
	struct budget_run run;

	budget_begin(&run, s->tab->budget);
	while (s->len && at + s->len <= end && !s->set->failed && !budget_over(&run)) {
		size_t stop = piece + PIECE + s->len - 1 < end ? piece + PIECE + s->len - 1 : end;
		const uint8_t *hit = memmem(str + at, stop - at, s->text, s->len);

		if (hit) {
			take_hit(s, (size_t)(hit - str));
			at = (size_t)(hit - str) + 1;
			if (at < piece + PIECE)
				continue;
		}
		if (s->len > PIECE)
			break;
		/* start_of_string() looks back into it at most once more. */
		if (s->tab->mapped)
			view_forget(str + piece, str + (piece + PIECE < end ? piece + PIECE : end));
		piece += PIECE;
		at = at > piece ? at : piece;
	}
	budget_end(&run);
	return s->set->failed ? -SB_ENOMEM : 0;
}

static int fill(struct strset *set, const struct symtab *tab, const char *text, bool exact)
{
	struct search s = {
		.set = set, .tab = tab, .text = text, .len = strlen(text), .exact = exact
	};
	int ret = -SB_ENOMEM;

	if (set_init(set, tab))
		ret = tab->str.size ? search_all(&s) : 0;
	if (ret)
		strset_free(set);
	return ret;
}

int strset_exact(struct strset *set, const struct symtab *tab, const char *name)
{
	return fill(set, tab, name, true);
}

int strset_containing(struct strset *set, const struct symtab *tab, const char *text)
{
	return fill(set, tab, text, false);
}
