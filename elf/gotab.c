/* SPDX-License-Identifier: MIT */
#include "gotab.h"

#include <stdlib.h>

enum {
	HEADER = 8 + 8 * 8,
	MAGIC_118 = 0xfffffff0,
	MAGIC_120 = 0xfffffff1,
	FUNCS_MOST = 1 << 22,
	FLAG_ASSEMBLY = 4,
	TRAP = 0xcc,
};

/* Words of the header behind its first eight bytes. */
enum { N_FUNCS, N_FILES, TEXT_START, NAMES, CU, FILES, PC, FUNCS };

static uint64_t word(struct view_range table, int i)
{
	return ld64(table.bytes + 8 + 8 * i);
}

static struct view_range part(struct view_range table, uint64_t off)
{
	if (off >= table.size)
		return (struct view_range){ NULL, 0 };
	return (struct view_range){ table.bytes + off, table.size - off };
}

/* One function: its start and its description's place in funcs. False: damaged. */
static bool read_func(struct gotab *t, struct view_range funcs, uint64_t i, uint64_t text,
		      size_t flag_at)
{
	uint64_t start = text + ld32(funcs.bytes + 8 * i);
	uint64_t at = ld32(funcs.bytes + 8 * i + 4);
	struct gotab_func *last = t->count ? &t->func[t->count - 1] : NULL;
	uint32_t name;

	if (at > funcs.size || funcs.size - at < flag_at + 1 || (last && start <= last->start))
		return false;
	name = ld32(funcs.bytes + at + 4);
	if (name >= t->names.size)
		return false;
	t->func[t->count++] = (struct gotab_func){
		.start = start,
		.name = name,
		.assembly = funcs.bytes[at + flag_at] & FLAG_ASSEMBLY,
	};
	return true;
}

static bool read_funcs(struct gotab *t, struct view_range funcs, uint64_t n, uint64_t text,
		       size_t flag_at, struct budget *budget)
{
	struct budget_run run;
	bool ok = true;

	budget_begin(&run, budget);
	for (uint64_t i = 0; i < n && ok; i++)
		ok = read_func(t, funcs, i, text, flag_at) && !budget_over(&run);
	budget_end(&run);
	return ok;
}

/* Up to its last NUL, so that each offset inside is a string. */
static struct view_range strings(struct view_range names, uint64_t size)
{
	if (names.size > size)
		names.size = size;
	while (names.size && names.bytes[names.size - 1])
		names.size--;
	return names;
}

static bool known(struct view_range table, size_t *flag_at)
{
	uint32_t magic;

	if (!table.bytes || table.size < HEADER)
		return false;
	magic = ld32(table.bytes);
	*flag_at = magic == MAGIC_120 ? 41 : 37; /* a function's first line is stored before it */
	return (magic == MAGIC_120 || magic == MAGIC_118) && !table.bytes[4] && !table.bytes[5] &&
	       table.bytes[7] == 8;
}

bool gotab_read(struct gotab *t, struct view_range table, uint64_t text, uint64_t entry,
		struct budget *budget)
{
	struct view_range funcs;
	uint64_t n, start;
	size_t flag_at;

	*t = (struct gotab){ 0 };
	if (!known(table, &flag_at))
		return false;
	n = word(table, N_FUNCS);
	start = word(table, TEXT_START);
	funcs = part(table, word(table, FUNCS));
	t->names = word(table, CU) > word(table, NAMES) ?
			   strings(part(table, word(table, NAMES)),
				   word(table, CU) - word(table, NAMES)) :
			   (struct view_range){ NULL, 0 };
	if (!n || n > FUNCS_MOST || n > funcs.size / 8 || !t->names.size)
		return false;
	t->func = calloc(n, sizeof(*t->func));
	if (t->func && read_funcs(t, funcs, n, start ? start : text, flag_at, budget) &&
	    (start || gotab_at(t, entry)))
		return true;
	gotab_free(t);
	return false;
}

const struct gotab_func *gotab_at(const struct gotab *t, uint64_t vaddr)
{
	size_t lo = 0, hi = t->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (t->func[mid].start < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->count && t->func[lo].start == vaddr ? &t->func[lo] : NULL;
}

/* The end of the last one is not recorded. */
static uint64_t size_of(const struct gotab *t, size_t i, gotab_bytes_fn *bytes, const void *ctx)
{
	uint64_t size = i + 1 < t->count ? t->func[i + 1].start - t->func[i].start : 0;
	size_t avail;
	const uint8_t *p = bytes(ctx, t->func[i].start, &avail);

	if (!p || avail < size)
		return 0;
	while (size > 1 && p[size - 1] == TRAP)
		size--;
	return size;
}

bool gotab_symbols(struct gotab *t, struct symtab *tab, gotab_bytes_fn *bytes, const void *ctx)
{
	struct view_range syms = { NULL, t->count * sizeof(*t->syms) };

	free(t->syms);
	t->syms = t->count ? calloc(t->count, sizeof(*t->syms)) : NULL;
	if (!t->syms)
		return false;
	for (size_t i = 0; i < t->count; i++)
		t->syms[i] = (Elf64_Sym){
			.st_name = t->func[i].name,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			.st_shndx = SHN_ABS,
			.st_value = t->func[i].start,
			.st_size = size_of(t, i, bytes, ctx),
		};
	syms.bytes = (const uint8_t *)t->syms;
	return symtab_init(tab, syms, t->names);
}

void gotab_free(struct gotab *t)
{
	free(t->func);
	free(t->syms);
	*t = (struct gotab){ 0 };
}
