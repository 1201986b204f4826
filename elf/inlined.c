/* SPDX-License-Identifier: MIT */
/* The places where a function was inlined, through libdw. */
#include "demangle.h"
#include "dwarf-units.h"
#include "match.h"
#include "here.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

struct inline_search {
	struct image *img;
	Dwarf_Die *unit;
	const char *name; /* or pattern */
	bool literal;
	struct inline_copy *copy; /* NULL: only counted */
	size_t count, cap;
	bool counts, failed;
	struct budget_run run;
};

static bool is_name(const struct inline_search *s, const char *text)
{
	return strcmp(s->name, text) == 0 || (!s->literal && glob_match(s->name, text));
}

/* A mangled name, in the form in which users write it, with or without its parameters. */
static bool is_mangled_name(const struct inline_search *s, const char *mangled)
{
	char *text = demangle_is_mangled(mangled) ? demangle_name(mangled, DEMANGLE_NO_RETURN) :
						    NULL;
	bool same = text && is_name(s, text);

	if (text && !same) {
		demangle_cut_parameters(text);
		same = is_name(s, text);
	}
	free(text);
	return same;
}

/* DW_AT_name has only the last part of C++ names: the linkage name has the whole. */
static bool is_wanted(const struct inline_search *s, Dwarf_Die *die)
{
	Dwarf_Attribute mem;
	Dwarf_Attribute *attr = dwarf_attr_integrate(die, DW_AT_linkage_name, &mem);
	const char *linkage, *name;

	if (!attr)
		attr = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &mem);
	linkage = attr ? dwarf_formstring(attr) : NULL;
	if (linkage)
		return is_name(s, linkage) || is_mangled_name(s, linkage);
	name = dwarf_diename(die);
	return name && is_name(s, name);
}

static bool add_range(struct inline_search *s, const struct inline_copy *range)
{
	if (s->count == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 64;
		struct inline_copy *more = realloc(s->copy, cap * sizeof(*more));

		s->failed = !more;
		if (!more)
			return false;
		s->copy = more;
		s->cap = cap;
	}
	s->copy[s->count++] = *range;
	return true;
}

/* The number of the last row at or before an address. */
static size_t row_at(Dwarf_Lines *lines, size_t n, Dwarf_Addr addr)
{
	size_t lo = 0, hi = n;
	Dwarf_Addr at;

	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;

		if (dwarf_lineaddr(dwarf_onesrcline(lines, mid), &at) == 0 && at <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The first statement that begins in a range: before it there may be no-ops of a loop's alignment.
 */
static bool first_statement(const struct inline_search *s, Dwarf_Addr begin, Dwarf_Addr end,
			    Dwarf_Addr *at)
{
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(s->unit, &lines, &n) || !n)
		return false;
	for (size_t i = row_at(lines, n, begin); i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		bool statement;
		int line;

		if (dwarf_lineaddr(row, at) || *at >= end)
			return false;
		if (*at >= begin && dwarf_linebeginstatement(row, &statement) == 0 && statement &&
		    dwarf_lineno(row, &line) == 0 && line > 0)
			return true;
	}
	return false;
}

/*
 * Where a copy begins: DW_AT_entry_pc, an address or (DWARF 5) an offset, or by its lines where it
 * is one range. With several ranges any may be the first: *sure is false.
 */
static bool entry_of(const struct inline_search *s, Dwarf_Die *die, Dwarf_Addr *at, bool *sure)
{
	Dwarf_Addr base, begin, end;
	Dwarf_Attribute mem;
	Dwarf_Word offset;
	ptrdiff_t next = dwarf_ranges(die, 0, &base, &begin, &end);

	*sure = true;
	if (next <= 0)
		return false;
	*at = begin;
	if (!dwarf_attr(die, DW_AT_entry_pc, &mem))
		*sure = first_statement(s, begin, end, at) &&
			dwarf_ranges(die, next, &base, &begin, &end) <= 0;
	else if (dwarf_formaddr(&mem, at) && dwarf_formudata(&mem, &offset) == 0)
		*at = base + offset;
	return true;
}

static bool same_line(Dwarf_Line *a, Dwarf_Line *b)
{
	const char *x = dwarf_linesrc(a, NULL, NULL), *y = dwarf_linesrc(b, NULL, NULL);
	int m, n;

	return x && y && !dwarf_lineno(a, &m) && !dwarf_lineno(b, &n) && m == n && !strcmp(x, y);
}

/*
 * Does the line at the start of a copy begin once more in this range of it? That happens where the
 * compiler unrolled the loop around it: one copy in DWARF, and several in the code.
 */
static bool begins_again(const struct inline_search *s, const struct inline_copy *range)
{
	Dwarf_Lines *lines;
	size_t n, first;
	Dwarf_Addr at;

	if (dwarf_getsrclines(s->unit, &lines, &n) || !n)
		return false;
	first = row_at(lines, n, range->entry);
	for (size_t i = row_at(lines, n, range->begin); i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		bool statement;

		if (dwarf_lineaddr(row, &at) || at >= range->end)
			break;
		if (at < range->begin || at == range->entry || !i ||
		    dwarf_linebeginstatement(row, &statement) || !statement)
			continue;
		if (same_line(row, dwarf_onesrcline(lines, first)) &&
		    !same_line(dwarf_onesrcline(lines, i - 1), row))
			return true;
	}
	return false;
}

static void take_copy(struct inline_search *s, Dwarf_Die *die)
{
	struct inline_copy range = { 0 };
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;
	bool sure;

	if (!is_wanted(s, die) || !entry_of(s, die, &range.entry, &sure) ||
	    !image_in_text(s->img, range.entry))
		return;
	if (s->counts) {
		s->count++;
		return;
	}
	while (!s->failed && (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0) {
		range.begin = begin;
		range.end = end;
		range.several = !sure || begins_again(s, &range);
		add_range(s, &range);
	}
}

static void walk(struct inline_search *s, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DWARF_DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		if (budget_over(&s->run))
			return;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
			take_copy(s, &die);
		walk(s, &die, depth + 1);
	} while (!s->failed && dwarf_siblingof(&die, &die) == 0);
}

static bool search_unit(void *ctx, Dwarf_Die *unit)
{
	struct inline_search *s = ctx;

	s->unit = unit;
	walk(s, unit, 0);
	return !s->failed;
}

static bool search(struct inline_search *s)
{
	bool has_dwarf;

	budget_begin(&s->run, &s->img->budget);
	has_dwarf = dwarf_units(s->img, &s->run, search_unit, s);
	budget_end(&s->run);
	view_forget(s->img->view.base, s->img->view.base + s->img->view.size);
	return has_dwarf;
}

size_t here_count_inlined(struct image *img, const char *name)
{
	struct inline_search s = { .img = img, .name = name, .literal = true, .counts = true };

	search(&s);
	return s.count;
}

static int by_entry(const void *a, const void *b)
{
	const struct inline_copy *x = a, *y = b;

	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The image keeps the ranges of its copies, for the check of branches into them. */
static void keep(struct inline_search *s)
{
	struct image *img = s->img;
	struct inline_copy *all = realloc(img->inlined, (img->n_inlined + s->count) * sizeof(*all));

	s->failed |= !all;
	if (!all)
		return;
	memcpy(all + img->n_inlined, s->copy, s->count * sizeof(*all));
	img->inlined = all;
	img->n_inlined += s->count;
	qsort(all, img->n_inlined, sizeof(*all), by_entry);
}

/* The number of the first range of the copy that begins there. */
static size_t first_at(const struct image *img, uint64_t entry)
{
	size_t lo = 0, hi = img->n_inlined;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (img->inlined[mid].entry < entry)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool image_inlined_from(const struct image *img, uint64_t entry, uint64_t from)
{
	for (size_t i = first_at(img, entry); i < img->n_inlined && img->inlined[i].entry == entry;
	     i++)
		if (from >= img->inlined[i].begin && from < img->inlined[i].end)
			return true;
	return false;
}

bool image_inlined_again(const struct image *img, uint64_t entry)
{
	for (size_t i = first_at(img, entry); i < img->n_inlined && img->inlined[i].entry == entry;
	     i++)
		if (img->inlined[i].several)
			return true;
	return false;
}

static int to_list(struct inline_search *s, struct symbol_list *out)
{
	qsort(s->copy, s->count, sizeof(*s->copy), by_entry);
	out->sym = calloc(s->count, sizeof(*out->sym));
	for (size_t i = 0; out->sym && i < s->count; i++) {
		uint64_t at = s->copy[i].entry, start = at, end = at;
		struct symbol *sym = &out->sym[out->count];

		if (i && at == s->copy[i - 1].entry)
			continue;
		image_function_at(s->img, at, &start, &end);
		*sym = (struct symbol){ .vaddr = start,
					.size = end - start,
					.offset = (uint32_t)(at - start),
					.name = here_holder(s->img, start) };
		out->count++;
		s->failed |= !sym->name;
	}
	if (out->sym && !s->failed) {
		out->img = image_ref(s->img);
		return 0;
	}
	symbol_list_free(out);
	return -1;
}

static int find_inlined(struct image *img, const char *name, unsigned int flags,
			struct symbol_list *out, struct sb_err *err)
{
	struct inline_search s = { .img = img, .name = name, .literal = flags & SYMBOL_LITERAL };
	bool has_dwarf = search(&s);
	int ret = 0;

	*out = (struct symbol_list){ 0 };
	if (s.count)
		keep(&s);
	if (s.failed || (s.count && to_list(&s, out) < 0)) {
		ret = err_set(err, SB_ENOMEM, "no memory for the inlined copies");
	} else if (!s.count) {
		ret = err_set(err, SB_ENOSYMBOL,
			      has_dwarf ? "%s has no inlined copy of '%s'" :
					  "%s has no debug information, and only that shows where "
					  "'%s' was inlined",
			      image_name(img), name);
		if (!has_dwarf)
			err_hint(err, "build it with -g, or install its debug symbols");
	}
	free(s.copy);
	return ret;
}

int here_find_everywhere(struct image *img, const char *name, unsigned int flags,
			 struct symbol_list *list, struct sb_err *err)
{
	struct symbol_list itself;
	int ret = find_inlined(img, name, flags, list, err);
	struct symbol *all;

	if (here_find(img, name, flags, &itself, NULL) < 0)
		return ret;
	if (ret < 0) {
		*list = itself;
		return 0;
	}
	all = realloc(list->sym, (list->count + itself.count) * sizeof(*all));
	if (!all) {
		symbol_list_free(&itself);
		symbol_list_free(list);
		return err_set(err, SB_ENOMEM, "no memory for the inlined copies");
	}
	memcpy(all + list->count, itself.sym, itself.count * sizeof(*all));
	list->sym = all;
	list->count += itself.count;
	itself.count = 0; /* the other list owns its names now */
	symbol_list_free(&itself);
	return 0;
}

void symbol_hint_inlined(size_t n, struct sb_err *err)
{
	err_hint(err,
		 "it is inlined at %zu place%s: inline=yes hooks %s, as MODULE:@FILE:LINE does "
		 "one line",
		 n, n > 1 ? "s" : "", n > 1 ? "them" : "it");
}
