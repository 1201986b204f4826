/* SPDX-License-Identifier: MIT */
/* FILE:LINE to addresses, through libdw. */
#include "dwarf-units.h"
#include "here.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

struct addr_list {
	uint64_t *addr;
	size_t count, cap;
};

struct line_search {
	struct image *img;
	const char *file;
	unsigned int line;
	struct addr_list at;	/* the result */
	struct addr_list weak;	/* rows of the line that begin no statement */
	struct addr_list begin; /* where the unit's functions and inline copies begin, sorted */
	bool has_begin;
	bool saw_file;
	unsigned int near; /* the nearest line that has code, 0 none */
	bool failed;
	struct budget_run run;
};

/* FILE is the end of the path, at a '/': "b.c" and "src/b.c" name "/home/x/src/b.c". */
static bool is_file(const char *path, const char *file)
{
	size_t len = strlen(path), want = strlen(file);

	while (want > 2 && file[0] == '.' && file[1] == '/') {
		file += 2;
		want -= 2;
	}
	if (len < want || strcmp(path + len - want, file) != 0)
		return false;
	return len == want || path[len - want - 1] == '/' || file[0] == '/';
}

static void add_addr(struct line_search *s, struct addr_list *list, uint64_t addr)
{
	if (list->count == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 16;
		uint64_t *more = realloc(list->addr, cap * sizeof(*more));

		if (!more) {
			s->failed = true;
			return;
		}
		list->addr = more;
		list->cap = cap;
	}
	list->addr[list->count++] = addr;
}

static int compare_addr(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

/* ---- where functions begin ---- */

static void take_begin(struct line_search *s, Dwarf_Die *die)
{
	Dwarf_Addr at, base, end;
	int tag = dwarf_tag(die);

	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return;
	if (dwarf_entrypc(die, &at) == 0 || dwarf_ranges(die, 0, &base, &at, &end) > 0)
		add_addr(s, &s->begin, at);
}

static void walk_dies(struct line_search *s, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DWARF_DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		if (budget_over(&s->run))
			return;
		take_begin(s, &die);
		walk_dies(s, &die, depth + 1);
	} while (!s->failed && dwarf_siblingof(&die, &die) == 0);
}

/* Read when a row first needs it: most searches need it for few units. */
static bool is_begin(struct line_search *s, Dwarf_Die *unit, uint64_t addr)
{
	if (!s->has_begin) {
		s->begin.count = 0;
		walk_dies(s, unit, 0);
		if (s->begin.count)
			qsort(s->begin.addr, s->begin.count, sizeof(addr), compare_addr);
		s->has_begin = true;
	}
	return s->begin.count &&
	       bsearch(&addr, s->begin.addr, s->begin.count, sizeof(addr), compare_addr);
}

/* ---- rows ---- */

static unsigned int away(unsigned int a, unsigned int b)
{
	return a > b ? a - b : b - a;
}

/*
 * One row of the line table; *inside: the row before it belongs to the line too. Then this row is
 * only a later statement of it, unless another function or inline copy begins here.
 */
static void take_row(struct line_search *s, Dwarf_Die *unit, Dwarf_Line *row, bool *inside)
{
	const char *path = dwarf_linesrc(row, NULL, NULL);
	Dwarf_Addr addr;
	bool statement, ends, ours;
	int line;

	if (!path || dwarf_lineno(row, &line) || dwarf_lineaddr(row, &addr) ||
	    dwarf_linebeginstatement(row, &statement) || dwarf_lineendsequence(row, &ends))
		return;
	ours = !ends && is_file(path, s->file);
	s->saw_file |= ours;
	if (ours && !statement && (unsigned int)line == s->line && image_in_text(s->img, addr))
		add_addr(s, &s->weak, addr);
	/* The linker leaves rows at 0 for functions that it dropped. */
	if (ours && statement && line > 0 && image_in_text(s->img, addr)) {
		if ((unsigned int)line == s->line && (!*inside || is_begin(s, unit, addr)))
			add_addr(s, &s->at, addr);
		else if (!s->near || away((unsigned int)line, s->line) < away(s->near, s->line))
			s->near = (unsigned int)line;
	}
	*inside = ours && line > 0 && (unsigned int)line == s->line && (statement || *inside);
}

static bool unit_has_file(Dwarf_Die *die, const char *file)
{
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(die, &files, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);

		if (path && is_file(path, file))
			return true;
	}
	return false;
}

static bool search_unit(void *ctx, Dwarf_Die *die)
{
	struct line_search *s = ctx;
	Dwarf_Lines *lines;
	size_t count;
	bool inside = false;

	if (!unit_has_file(die, s->file) || dwarf_getsrclines(die, &lines, &count))
		return true;
	s->has_begin = false;
	for (size_t i = 0; i < count && !s->failed && !budget_over(&s->run); i++)
		take_row(s, die, dwarf_onesrcline(lines, i), &inside);
	return !s->failed;
}

/* Does a sorted list have an address in [start, end)? */
static bool has_within(const uint64_t *addr, size_t count, uint64_t start, uint64_t end)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (addr[mid] < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < count && addr[lo] < end;
}

/*
 * Optimised code may have a line without the start of a statement. In a function where that is so
 * the first row of the line is used instead.
 */
static void take_weak(struct line_search *s)
{
	uint64_t start, end, done = 0;
	size_t count = s->at.count;

	if (count)
		qsort(s->at.addr, count, sizeof(uint64_t), compare_addr);
	if (s->weak.count)
		qsort(s->weak.addr, s->weak.count, sizeof(uint64_t), compare_addr);
	for (size_t i = 0; i < s->weak.count && !s->failed; i++) {
		uint64_t addr = s->weak.addr[i];

		if (addr < done || !image_function_at(s->img, addr, &start, &end) ||
		    has_within(s->at.addr, count, start, end))
			continue;
		add_addr(s, &s->at, addr);
		done = end;
	}
}

static int no_line(const struct line_search *s, bool has_dwarf, struct sb_err *err)
{
	const char *name = image_name(s->img);

	if (!has_dwarf) {
		err_set(err, SB_ENOSYMBOL, "%s has no line numbers", name);
		err_hint(err, "build it with -g, or install its debug symbols; MODULE:SYMBOL+0xOFF "
			      "needs none");
		return -SB_ENOSYMBOL;
	}
	if (!s->saw_file)
		return err_set(err, SB_ENOSYMBOL, "no code of %s comes from '%s'", name, s->file);
	err_set(err, SB_ENOSYMBOL, "%s has no code for %s:%u", name, s->file, s->line);
	if (s->near)
		err_hint(err, "the nearest line with code is %u", s->near);
	return -SB_ENOSYMBOL;
}

char *here_holder(struct image *img, uint64_t start)
{
	char name[512];

	if (!here_name_at(img, start, name, sizeof(name)))
		snprintf(name, sizeof(name), "0x%llx", (unsigned long long)start);
	return strdup(name);
}

static int to_list(struct line_search *s, struct symbol_list *out, struct sb_err *err)
{
	const uint64_t *addr = s->at.addr;

	qsort(s->at.addr, s->at.count, sizeof(*addr), compare_addr);
	out->sym = calloc(s->at.count, sizeof(*out->sym));
	for (size_t i = 0; out->sym && i < s->at.count; i++) {
		struct symbol *sym = &out->sym[out->count];
		uint64_t start = addr[i], end = start;

		if (i && addr[i] == addr[i - 1])
			continue;
		image_function_at(s->img, addr[i], &start, &end);
		*sym = (struct symbol){ .vaddr = start,
					.size = end - start,
					.offset = (uint32_t)(addr[i] - start),
					.name = here_holder(s->img, start) };
		out->count++;
		if (!sym->name)
			s->failed = true;
	}
	if (out->sym && !s->failed) {
		out->img = image_ref(s->img);
		return 0;
	}
	symbol_list_free(out);
	return err_set(err, SB_ENOMEM, "no memory for the lines");
}

int here_find_line(struct image *img, const char *file, unsigned int line, struct symbol_list *out,
		   struct sb_err *err)
{
	struct line_search s = { .img = img, .file = file, .line = line };
	bool has_dwarf;
	int ret;

	*out = (struct symbol_list){ 0 };
	budget_begin(&s.run, &img->budget);
	has_dwarf = dwarf_units(img, &s.run, search_unit, &s);
	budget_end(&s.run);
	take_weak(&s);
	if (s.failed)
		ret = err_set(err, SB_ENOMEM, "no memory for the lines");
	else if (!s.at.count)
		ret = no_line(&s, has_dwarf, err);
	else
		ret = to_list(&s, out, err);
	free(s.at.addr);
	free(s.weak.addr);
	free(s.begin.addr);
	view_forget(img->view.base, img->view.base + img->view.size);
	return ret;
}
