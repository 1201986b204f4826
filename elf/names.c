/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <stdlib.h>

/* FNV-1a, up to the version. */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name && *name != '@'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

static bool add(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct names *names = ctx;

	if (sym->st_shndx != SHN_UNDEF && sym->st_name)
		names->entry[names->count++] = (struct names_entry){ hash_of(symtab_name(tab, sym)),
								     i };
	return true;
}

static int by_hash(const void *a, const void *b)
{
	const struct names_entry *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->sym > y->sym) - (x->sym < y->sym);
}

bool names_build(struct names *names, const struct symtab *tab)
{
	void *fit;

	names->count = 0;
	names->entry = malloc(tab->count * sizeof(*names->entry));
	if (!names->entry)
		return false;
	symtab_scan(tab, NULL, add, names);
	fit = realloc(names->entry, (names->count + 1) * sizeof(*names->entry));
	if (fit)
		names->entry = fit;
	qsort(names->entry, names->count, sizeof(*names->entry), by_hash);
	return true;
}

void names_free(struct names *names)
{
	free(names->entry);
	*names = (struct names){ 0 };
}

void names_each(const struct names *names, const struct symtab *tab, const char *name,
		symtab_fn *fn, void *ctx)
{
	uint32_t hash = hash_of(name);
	size_t lo = 0, hi = names->count;
	Elf64_Sym sym;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (names->entry[mid].hash < hash)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < names->count && names->entry[lo].hash == hash; lo++) {
		symtab_get(tab, names->entry[lo].sym, &sym);
		if (!fn(ctx, tab, names->entry[lo].sym, &sym))
			return;
	}
}
