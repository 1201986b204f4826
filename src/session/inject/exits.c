/* SPDX-License-Identifier: MIT */
/* The exits of functions as sites (at=exit, time=): each function gives several, or none. */
#include <stdlib.h>
#include <string.h>
#include "sites.h"
#include "elf/symbol.h"
#include "inject/exits.h"
#include "src/base/text.h"

enum { NAME_MAX_SHOWN = 1024 };

/* ---- which code belongs to the function ---- */

struct owner {
	struct image *img;
	uint64_t func; /* vaddr */
};

/* "f" for "f.cold" and "f.cold.3": the name that GCC gives to the part of f that rarely runs. */
static bool cut_cold(char *name)
{
	char *cold = strstr(name, ".cold");

	if (!cold || cold == name || (cold[5] && cold[5] != '.'))
		return false;
	*cold = '\0';
	return true;
}

static bool names_function(struct image *img, const char *name, uint64_t func)
{
	struct symbol_list list;
	bool found = false;

	if (symbol_find(img, name, SYMBOL_LITERAL, &list, NULL) < 0)
		return false;
	for (size_t i = 0; i < list.count; i++)
		found |= list.sym[i].vaddr == func;
	symbol_list_free(&list);
	return found;
}

static bool is_cold_part(const struct owner *o, uint64_t start)
{
	char part[NAME_MAX_SHOWN], own[NAME_MAX_SHOWN];

	if (image_is_part(o->img, start))
		return true;
	if (!symbol_name_at(o->img, start, part, sizeof(part)) || !cut_cold(part))
		return false;
	return (symbol_name_at(o->img, o->func, own, sizeof(own)) && !strcmp(own, part)) ||
	       names_function(o->img, part, o->func);
}

/* A caller within the file may pass over the endbr64. */
static bool behind_endbr(struct image *img, uint64_t start, uint64_t addr)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t avail;
	const uint8_t *p = image_bytes(img, start, &avail);

	return addr == start + sizeof(endbr64) && p && avail >= sizeof(endbr64) &&
	       !memcmp(p, endbr64, sizeof(endbr64));
}

static enum exits_place place_of(void *ctx, uint64_t addr, struct exits_part *part)
{
	const struct owner *o = ctx;

	if (!image_function_at(o->img, addr, &part->start, &part->end))
		return EXITS_UNKNOWN;
	if (is_cold_part(o, part->start))
		return EXITS_PART;
	return addr == part->start || behind_endbr(o->img, part->start, addr) ? EXITS_FUNCTION :
										EXITS_UNKNOWN;
}

/* ---- sites ---- */

static void add_exit(struct found *found, const struct found_site *function,
		     const struct exits_site *exit, enum arch_kind kind, const struct exits *all)
{
	struct found_site site = *function;

	site.img = image_ref(function->img);
	site.name = text_dup(function->name);
	site.exit = true;
	site.runs_on = exit->runs_on;
	site.hook.kind = kind;
	site.switches = all->tables;
	site.leaves = all->conditional;
	site.hook.function = function->func;
	site.addr = exit->addr + function->bias;
	site.func = exit->part.start + function->bias;
	site.size = exit->part.end - exit->part.start;
	found_add(found, &site);
}

/* True: `exits` has all exits of the function. False: why and detail of *site say why not. */
static bool find_exits(const struct found_site *function, struct found_site *site,
		       struct exits *exits)
{
	struct owner owner = { function->img, function->func - function->bias };
	struct plan_request req;

	site->hook.why = PLAN_EXIT_INSIDE;
	if (function->addr != function->func || !sites_request(function, false, &req))
		return false;
	/* Without a length of its own it may extend over what follows: _init() over the PLT. */
	if (!image_is_bounded(function->img, owner.func))
		req.func_end = 0;
	site->hook.why = exits_find(&req, place_of, &owner, exits, site->detail,
				    sizeof(site->detail));
	return site->hook.why == PLAN_OK;
}

void found_add_exits(struct found *found, const struct found_site *function)
{
	struct found_site site = *function;
	struct exits exits;

	site.exit = true;
	site.hook.function = function->func;
	if (!find_exits(function, &site, &exits)) {
		found_add(found, &site);
		return;
	}
	for (size_t i = 0; i < exits.count; i++)
		add_exit(found, function, &exits.site[i], ARCH_HIT, &exits);
	free(exits.site);
	image_put(function->img);
	free(function->name);
}

static bool is_go(const struct found_site *function)
{
	return image_is_go(function->img) &&
	       image_go_function(function->img, function->func - function->bias) != GO_NOT;
}

void found_add_ends(struct found *found, const struct found_site *function, bool whole)
{
	struct found_site site = *function, look = *function;
	struct exits exits = { 0 };

	site.hook.function = function->func;
	site.hook.whole = whole;
	if (!whole && is_go(function))
		site.hook.untimed = PLAN_EXIT_GO;
	else if (find_exits(function, &look, &exits))
		site.hook.kind = ARCH_BEGIN;
	else if (whole)
		site.hook.why = look.hook.why;
	else
		site.hook.untimed = look.hook.why;
	if (site.hook.untimed || site.hook.why)
		memcpy(site.detail, look.detail, sizeof(site.detail));
	found_add(found, &site);
	for (size_t i = 0; i < exits.count; i++)
		add_exit(found, function, &exits.site[i], ARCH_END, &exits);
	free(exits.site);
}

static bool same_function(const struct found_site *a, const struct found_site *b)
{
	return b->exit && a->hook.target == b->hook.target && a->img == b->img &&
	       a->bias == b->bias && a->hook.function == b->hook.function;
}

static void drop(struct found_site *s)
{
	image_put(s->img);
	free(s->name);
}

/* The first refused site of [from, to), or `to`. */
static size_t first_refused(const struct found *found, size_t from, size_t to)
{
	while (from < to && found->site[from].hook.why == PLAN_OK)
		from++;
	return from;
}

/* The one site that is left of a function whose site `bad` is refused. */
static struct found_site left_of(const struct found_site *first, const struct found_site *bad)
{
	struct found_site left = *first;

	if (first->hook.kind == ARCH_BEGIN && first != bad && !first->hook.whole) {
		left.hook.kind = ARCH_HIT;
		left.hook.untimed = bad->hook.why;
	} else if (first != bad) {
		left.hook.why = bad->hook.why;
	}
	memcpy(left.detail, bad->detail, sizeof(left.detail));
	if (first->exit)
		left.addr = left.hook.function;
	return left;
}

/* The exits that the window of their function's entry covers need none of their own. */
static void settle_inner(struct found *found)
{
	struct found_site *entry = NULL;

	for (size_t i = 0; i < found->count; i++) {
		struct found_site *s = &found->site[i];
		struct plan inner;

		if (s->hook.kind != ARCH_END) {
			entry = s->hook.kind == ARCH_BEGIN && s->hook.why == PLAN_OK ? s : NULL;
			continue;
		}
		if (!entry || !same_function(entry, s))
			continue;
		if (s->runs_on && s->hook.why == PLAN_OK)
			plan_append(&entry->hook.plan, &s->hook.plan, s->addr);
		if (!plan_inner(&entry->hook.plan, s->addr, &inner))
			continue;
		s->hook.plan = inner;
		s->hook.why = PLAN_OK;
		s->detail[0] = '\0';
	}
}

/* Is the window at addr an exit's own? It may have become an inner exit since the plans were made.
 */
static bool has_window(const struct found *found, size_t from, size_t to, uint64_t addr)
{
	for (size_t i = from; i < to; i++) {
		const struct found_site *s = &found->site[i];

		if (s->exit && s->hook.why == PLAN_OK && s->hook.plan.addr == addr)
			return s->hook.plan.len && !s->hook.plan.twin;
	}
	return false;
}

/* Refuses the exits of [from, to), of one function, whose twin is not hooked itself. */
static void settle_twins(struct found *found, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct found_site *s = &found->site[i];

		if (s->exit && s->hook.why == PLAN_OK && s->hook.plan.twin &&
		    !has_window(found, from, to, s->hook.plan.twin))
			s->hook.why = PLAN_EXIT_ROOM;
	}
}

void found_settle_exits(struct found *found)
{
	size_t kept = 0, last;

	settle_inner(found);
	for (size_t first = 0; first < found->count; first = last) {
		const struct found_site *s = &found->site[first];
		bool group = s->exit || s->hook.kind == ARCH_BEGIN;
		struct found_site left;
		size_t bad;

		for (last = first + 1;
		     last < found->count && group && same_function(s, &found->site[last]);)
			last++;
		if (group)
			settle_twins(found, first, last);
		bad = group ? first_refused(found, first, last) : last;
		if (bad < last) {
			left = left_of(s, &found->site[bad]);
			for (size_t i = first + 1; i < last; i++)
				drop(&found->site[i]);
			found->site[kept++] = left;
			continue;
		}
		for (size_t i = first; i < last; i++)
			found->site[kept++] = found->site[i];
	}
	found->count = kept;
}
