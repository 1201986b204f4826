/* SPDX-License-Identifier: MIT */
/*
 * The index of functions: 12 bytes each, sorted by start. The first query of an address builds it;
 * a name lookup does not need it.
 */
#include "image-priv.h"

#include <stdlib.h>

/* A function may lie inside another (labels in assembly); the search goes back this far. */
#define NESTING 8

struct collector {
	struct image *img;
	struct image_func *func;
	size_t count, cap;
	uint32_t table;
	bool failed;
};

static bool collect(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct collector *c = ctx;
	uint64_t start = sym->st_value - c->img->func_base;

	(void)tab;
	/* No code model reaches further than 4 GiB; symbols beyond are damage. */
	if (!image_is_function(c->img, sym, false) || start > UINT32_MAX || i >> 30)
		return true;
	if (c->count == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 1024;
		struct image_func *more = realloc(c->func, cap * sizeof(*more));

		if (!more) {
			c->failed = true;
			return false;
		}
		c->func = more;
		c->cap = cap;
	}
	c->func[c->count++] = (struct image_func){
		.start = (uint32_t)start,
		.size = sym->st_size < UINT32_MAX ? (uint32_t)sym->st_size : 0,
		.sym = i << 2 | c->table,
	};
	return true;
}

/* Radix sort by start, stable: 300 000 entries in 3 ms, where qsort() takes 40. */
static bool sort_by_start(struct image_func *func, size_t count)
{
	struct image_func *other = malloc(count * sizeof(*other)), *from = func, *to = other;

	if (!other)
		return false;
	for (unsigned int shift = 0; shift < 32; shift += 8) {
		size_t at[257] = { 0 };
		struct image_func *swap = from;

		for (size_t i = 0; i < count; i++)
			at[(from[i].start >> shift & 0xff) + 1]++;
		for (unsigned int i = 1; i < 256; i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < count; i++)
			to[at[from[i].start >> shift & 0xff]++] = from[i];
		from = to;
		to = swap;
	}
	free(other);
	return true;
}

static void symbol_of(struct image *img, const struct image_func *f, Elf64_Sym *sym,
		      const char **name)
{
	const struct symtab *tab = &img->tab[f->sym & 3];

	symtab_get(tab, f->sym >> 2, sym);
	*name = symtab_name(tab, sym);
}

/* Of two names for one address the global one is shown, then the shorter one. */
static bool is_better_name(struct image *img, const struct image_func *a,
			   const struct image_func *b)
{
	Elf64_Sym sa, sb;
	const char *na, *nb;
	bool ga, gb;

	symbol_of(img, a, &sa, &na);
	symbol_of(img, b, &sb, &nb);
	ga = ELF64_ST_BIND(sa.st_info) != STB_LOCAL;
	gb = ELF64_ST_BIND(sb.st_info) != STB_LOCAL;
	if (ga != gb)
		return ga;
	return strcspn(na, "@") < strcspn(nb, "@");
}

/* One entry per start address, with the largest size of all its aliases. */
static size_t merge_aliases(struct image *img, struct image_func *func, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct image_func *last = n ? &func[n - 1] : NULL;

		if (!last || last->start != func[i].start) {
			func[n++] = func[i];
			continue;
		}
		last->size = last->size > func[i].size ? last->size : func[i].size;
		if (last->sym != func[i].sym && is_better_name(img, &func[i], last))
			last->sym = func[i].sym;
	}
	return n;
}

static image_index_fn *asked;

void image_index_from(image_index_fn *from)
{
	asked = from;
}

static void build_here(struct image *img)
{
	struct collector c = { .img = img };
	struct image_func *less;

	for (c.table = 0; c.table < TABLE_COUNT && !c.failed; c.table++) {
		const struct symtab *tab = image_table(img, c.table);

		if (tab)
			symtab_scan(tab, NULL, collect, &c);
	}
	if (c.failed || !c.count || !sort_by_start(c.func, c.count)) {
		free(c.func);
		return;
	}
	img->func_count = merge_aliases(img, c.func, c.count);
	less = realloc(c.func, img->func_count * sizeof(*less));
	img->func = less ? less : c.func;
	for (enum image_table t = 0; t < TABLE_COUNT; t++)
		if (img->tab[t].count)
			symtab_forget(&img->tab[t]);
}

/* By the reader, if there is one. */
void image_index(struct image *img)
{
	struct image_segment text;

	if (img->func_built)
		return;
	img->func_built = true;
	if (!image_text(img, &text, 1))
		return;
	img->func_base = text.vaddr;
	if (!asked || !asked(img))
		build_here(img);
}

void image_func_free(struct image *img)
{
	free(img->func);
	img->func = NULL;
	img->func_count = 0;
	img->func_built = false;
}

/* ---- queries ---- */

static uint64_t func_start(const struct image *img, size_t i)
{
	return img->func_base + img->func[i].start;
}

static uint64_t segment_end(const struct image *img, uint64_t vaddr)
{
	size_t avail;

	return image_bytes(img, vaddr, &avail) ? vaddr + avail : vaddr;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t image_func_end(struct image *img, size_t i)
{
	uint64_t start = func_start(img, i), end = segment_end(img, start), fde, fde_end;

	if (img->func[i].size)
		return min_u64(end, start + img->func[i].size);
	if (ehframe_find(&img->eh, start, &fde, &fde_end))
		end = min_u64(end, fde_end);
	return i + 1 < img->func_count ? min_u64(end, func_start(img, i + 1)) : end;
}

/* The number of entries that start at or below vaddr. */
static size_t func_rank(struct image *img, uint64_t vaddr)
{
	size_t lo = 0, hi;

	image_index(img);
	for (hi = img->func_count; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (func_start(img, mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

enum image_go image_go_function(struct image *img, uint64_t vaddr)
{
	const struct gotab *t;
	const struct gotab_func *f;

	if (!img->go)
		return GO_UNKNOWN;
	image_index(img); /* fills the table if the reader makes it */
	t = image_gotab(img);
	if (!t->count)
		return GO_UNKNOWN;
	f = gotab_at(t, vaddr);
	return !f ? GO_NOT : f->assembly ? GO_ASSEMBLY : GO_COMPILED;
}

ptrdiff_t image_func_around(struct image *img, uint64_t vaddr)
{
	size_t rank = func_rank(img, vaddr);

	for (size_t i = rank; i > 0 && rank - i < NESTING; i--)
		if (vaddr < image_func_end(img, i - 1))
			return (ptrdiff_t)i - 1;
	return -1;
}

bool image_function_at(struct image *img, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	ptrdiff_t i;

	if (!image_in_text(img, vaddr))
		return false;
	i = image_func_around(img, vaddr);
	if (i < 0) {
		if (!ehframe_find(&img->eh, vaddr, start, end) || !image_in_text(img, *start))
			return false;
		*end = min_u64(*end, segment_end(img, *start));
		return vaddr < *end;
	}
	*start = func_start(img, (size_t)i);
	*end = image_func_end(img, (size_t)i);
	return true;
}

struct entry_question {
	struct image *img;
	uint64_t vaddr;
	bool found;
};

static bool is_symbol_at(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct entry_question *q = ctx;

	(void)tab;
	(void)i;
	q->found = sym->st_value == q->vaddr && image_is_function(q->img, sym, false);
	return !q->found;
}

bool image_is_entry(struct image *img, uint64_t vaddr)
{
	struct entry_question q = { .img = img, .vaddr = vaddr };
	uint64_t start, end;
	size_t rank;

	if (!image_in_text(img, vaddr))
		return false;
	rank = func_rank(img, vaddr);
	if (rank && func_start(img, rank - 1) == vaddr &&
	    ((img->func[rank - 1].sym & 3) != TABLE_EXTRA || img->debug.packed))
		return true;
	if (ehframe_find(&img->eh, vaddr, &start, &end) && start == vaddr)
		return true;
	/* The index has one name per address, which may be the debug file's. */
	for (enum image_table t = TABLE_DYNSYM; t < TABLE_EXTRA && !q.found; t++)
		if (image_table(img, t))
			symtab_scan(image_table(img, t), NULL, is_symbol_at, &q);
	return q.found;
}

/*
 * Unknown bytes before a function count as used: a neighbour of unknown length, or one that extends
 * into it, leaves no space.
 */
static uint64_t last_end_by_symbols(struct image *img, uint64_t start, uint64_t floor)
{
	size_t rank = func_rank(img, start ? start - 1 : 0);
	uint64_t last = floor;

	for (size_t i = rank; i > 0 && rank - i < NESTING; i--) {
		uint64_t end = min_u64(image_func_end(img, i - 1), start);

		if (func_start(img, i - 1) < start && end > last)
			last = end;
	}
	return last;
}

static uint64_t last_end_by_fde(struct image *img, uint64_t start, uint64_t floor)
{
	uint32_t rank = start ? ehframe_rank(&img->eh, start - 1) : 0;
	uint64_t fde_start, end;

	if (!rank)
		return floor;
	if (!ehframe_entry(&img->eh, rank - 1, &fde_start, &end))
		end = start;
	end = min_u64(end, start);
	return end > floor ? end : floor;
}

static uint64_t next_start(struct image *img, uint64_t start, uint64_t ceiling)
{
	size_t rank = func_rank(img, start);
	uint32_t fde_rank = ehframe_rank(&img->eh, start);
	uint64_t fde_start, unused;

	if (rank < img->func_count)
		ceiling = min_u64(ceiling, func_start(img, rank));
	if (fde_rank < img->eh.count) {
		ehframe_entry(&img->eh, fde_rank, &fde_start, &unused);
		if (fde_start > start)
			ceiling = min_u64(ceiling, fde_start);
	}
	return ceiling;
}

void image_function_room(struct image *img, uint64_t start, uint64_t end, uint64_t *prev_end,
			 uint64_t *next)
{
	uint64_t floor = start, ceiling = end;

	for (uint32_t i = 0; i < img->load_count; i++) {
		const struct image_load *l = &img->load[i];

		if ((l->flags & PF_X) && start >= l->vaddr && start - l->vaddr < l->filesz) {
			floor = l->vaddr;
			ceiling = l->vaddr + l->filesz;
		}
	}
	*prev_end = last_end_by_fde(img, start, last_end_by_symbols(img, start, floor));
	*next = next_start(img, start, ceiling);
}

uint64_t image_fill_end(struct image *img, uint64_t vaddr)
{
	uint64_t end = UINT64_MAX;
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(&img->view, i, &sh); i++) {
		if (!(sh.sh_flags & SHF_ALLOC) || !sh.sh_size)
			continue;
		if (vaddr - sh.sh_addr < sh.sh_size)
			return vaddr;
		if (sh.sh_addr > vaddr)
			end = min_u64(end, sh.sh_addr);
	}
	return end == UINT64_MAX ? vaddr : min_u64(end, segment_end(img, vaddr));
}

bool image_is_part(const struct image *img, uint64_t vaddr)
{
	return ehframe_begins_inside(&img->eh, vaddr);
}

bool image_is_bounded(struct image *img, uint64_t vaddr)
{
	ptrdiff_t i = image_func_around(img, vaddr);
	uint64_t start, end;

	if (i >= 0 && func_start(img, (size_t)i) == vaddr && img->func[i].size)
		return true;
	return ehframe_find(&img->eh, vaddr, &start, &end) && start == vaddr;
}
