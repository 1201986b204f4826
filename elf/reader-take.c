/* SPDX-License-Identifier: MIT */
/*
 * What a reader answered. A hostile file may have taken it over, so everything is checked: then its
 * answer is no worse than what a file can say of itself.
 */
#include "reader-wire.h"

#include <stdlib.h>

#define MOST_FUNCS (16u << 20)

/* Numbers are in their bounds. */
static bool are_rules(const struct unwind_rules *rules)
{
	bool ok = rules->cfa_reg <= UNWIND_REGS &&
		  rules->cfa_expr.size <= sizeof(rules->cfa_expr.byte);

	for (int i = 0; i < UNWIND_REGS; i++)
		ok &= rules->rule[i].kind < UNWIND_KINDS &&
		      rules->rule[i].expr.size <= sizeof(rules->rule[i].expr.byte);
	return ok;
}

bool reader_is_plausible(const struct reader_reply *reply)
{
	return reply->ret <= 0 && reply->ret > -SB_CODE_COUNT && reply->n_sym <= READER_SYMBOLS &&
	       reply->n_func <= MOST_FUNCS && reply->n_go <= MOST_FUNCS &&
	       reply->bytes <= READER_BYTES &&
	       reply->n_sym * sizeof(struct reader_sym) +
			       reply->n_inlined * sizeof(struct inline_copy) +
			       reply->n_func * sizeof(struct reader_func) +
			       reply->n_go * sizeof(struct reader_go) <=
		       reply->bytes &&
	       (unsigned int)reply->err.code < SB_CODE_COUNT && are_rules(&reply->rules);
}

static void take_flaws(struct image *img, uint32_t flaws)
{
	img->budget.over |= (flaws & READER_SLOW) != 0;
	img->map.torn |= (flaws & READER_TORN) != 0;
	if (flaws & READER_PACKED)
		img->flaw = image_flaw_packed;
	if (flaws & READER_DEBUG)
		img->flaw = image_flaw_debug;
}

/* The order by entry is that of the search: image_inlined_from() relies on it, and reads no more
 * than there is. */
static bool take_inlined(struct image *img, const struct reader_reply *reply, const char *at)
{
	size_t bytes = reply->n_inlined * sizeof(struct inline_copy);
	struct inline_copy *all = reply->n_inlined ? malloc(bytes) : NULL;

	if (!reply->n_inlined)
		return true;
	if (!all)
		return false;
	memcpy(all, at, bytes);
	for (size_t i = 0; i < reply->n_inlined; i++)
		all[i].several = at[i * sizeof(*all) + offsetof(struct inline_copy, several)] != 0;
	free(img->inlined);
	img->inlined = all;
	img->n_inlined = reply->n_inlined;
	return true;
}

static bool take_symbols(struct image *img, const struct reader_reply *reply, const char *at,
			 const char *names, struct symbol_list *list, bool anywhere)
{
	const char *last = at + reply->bytes;

	list->sym = calloc(reply->n_sym + 1, sizeof(*list->sym));
	for (size_t i = 0; list->sym && i < reply->n_sym; i++) {
		struct symbol *to = &list->sym[i];
		struct reader_sym sym;

		memcpy(&sym, at + i * sizeof(sym), sizeof(sym));
		if (sym.name_len > READER_LONGEST || sym.name_len > (size_t)(last - names) ||
		    (!anywhere && !image_in_text(img, sym.vaddr)))
			break;
		*to = (struct symbol){ .vaddr = sym.vaddr,
				       .size = sym.size,
				       .offset = sym.offset,
				       .ifunc = sym.ifunc,
				       .name = strndup(names, sym.name_len) };
		if (!to->name)
			break;
		names += sym.name_len;
		list->count++;
	}
	if (list->sym && list->count == reply->n_sym) {
		list->img = image_ref(img);
		return true;
	}
	symbol_list_free(list);
	return false;
}

/* Sorted, each function once, in the text: what func.c relies on. */
static bool take_funcs(struct image *img, const struct reader_reply *reply, const char *at)
{
	struct image_func *all = calloc(reply->n_func + 1, sizeof(*all));

	for (size_t i = 0; all && i < reply->n_func; i++) {
		struct reader_func f;

		memcpy(&f, at + i * sizeof(f), sizeof(f));
		if ((i && f.start <= all[i - 1].start) ||
		    !image_in_text(img, img->func_base + f.start)) {
			free(all);
			return false;
		}
		all[i] = (struct image_func){ .start = f.start,
					      .size = f.size,
					      .sym = f.table == TABLE_EXTRA ? TABLE_EXTRA : 0 };
	}
	free(img->func);
	img->func = all;
	img->func_count = all ? reply->n_func : 0;
	return all;
}

static bool take_go(struct image *img, const struct reader_reply *reply, const char *at)
{
	struct gotab_func *all = calloc(reply->n_go + 1, sizeof(*all));

	for (size_t i = 0; all && i < reply->n_go; i++) {
		struct reader_go f;

		memcpy(&f, at + i * sizeof(f), sizeof(f));
		if (i && f.start <= all[i - 1].start) {
			free(all);
			return false;
		}
		all[i] = (struct gotab_func){ .start = f.start, .assembly = f.assembly };
	}
	gotab_free(&img->gotab);
	img->gotab.func = all;
	img->gotab.count = all ? reply->n_go : 0;
	img->gotab_tried = true;
	return all;
}

bool reader_take(struct image *img, enum reader_op op, const struct reader_reply *reply,
		 const char *bytes, struct symbol_list *list)
{
	const char *inlined = bytes + reply->n_sym * sizeof(struct reader_sym);
	const char *funcs = inlined + reply->n_inlined * sizeof(struct inline_copy);
	const char *go = funcs + reply->n_func * sizeof(struct reader_func);

	take_flaws(img, reply->flaws);
	if (reply->ret < 0)
		return true;
	if (!take_inlined(img, reply, inlined))
		return false;
	if (list)
		return take_symbols(img, reply, bytes, go + reply->n_go * sizeof(struct reader_go),
				    list, op == READER_NEAR || op == READER_OBJECT);
	return op != READER_INDEX || (take_funcs(img, reply, funcs) && take_go(img, reply, go));
}
