/* SPDX-License-Identifier: MIT */
#include "symtab.h"

enum { STRINGS_TAIL = 1 << 20 };

bool symtab_init(struct symtab *tab, struct view_range syms, struct view_range str)
{
	const uint8_t *last;
	size_t tail;

	*tab = (struct symtab){ 0 };
	if (!syms.bytes || !str.bytes)
		return false;
	if (syms.size > BUDGET_SYMBOLS || str.size > BUDGET_STRINGS)
		return false;
	/* No string may exceed the table; a linker's table ends with a NUL. */
	tail = str.size < STRINGS_TAIL ? str.size : STRINGS_TAIL;
	last = memrchr(str.bytes + (str.size - tail), '\0', tail);
	if (!last)
		return false;
	str.size = (size_t)(last - str.bytes) + 1;
	tab->syms = syms;
	tab->str = str;
	tab->count = (uint32_t)(syms.size / sizeof(Elf64_Sym));
	return tab->count > 0;
}

static struct view_range linked_section(const struct view *v, const Elf64_Shdr *sh)
{
	Elf64_Shdr link;

	if (!view_shdr(v, sh->sh_link, &link) || link.sh_type != SHT_STRTAB)
		return (struct view_range){ NULL, 0 };
	return view_section(v, &link);
}

/* The version sections of a .dynsym; there is one of each kind at most. */
static void find_versions(struct symtab *tab, const struct view *v)
{
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(v, i, &sh); i++) {
		if (sh.sh_type == SHT_GNU_versym) {
			tab->versym = view_section(v, &sh);
		} else if (sh.sh_type == SHT_GNU_verdef) {
			tab->verdef = view_section(v, &sh);
			tab->verstr = linked_section(v, &sh);
		} else if (sh.sh_type == SHT_GNU_verneed) {
			tab->verneed = view_section(v, &sh);
			tab->verstr = linked_section(v, &sh);
		}
	}
}

bool symtab_from_section(struct symtab *tab, const struct view *v, const Elf64_Shdr *sh)
{
	if (!symtab_init(tab, view_section(v, sh), linked_section(v, sh)))
		return false;
	tab->dynamic = sh->sh_type == SHT_DYNSYM;
	if (tab->dynamic)
		find_versions(tab, v);
	return true;
}

void symtab_get(const struct symtab *tab, uint32_t i, Elf64_Sym *sym)
{
	memcpy(sym, tab->syms.bytes + (size_t)i * sizeof(*sym), sizeof(*sym));
}

const char *symtab_name(const struct symtab *tab, const Elf64_Sym *sym)
{
	return sym->st_name < tab->str.size ? (const char *)tab->str.bytes + sym->st_name : "";
}

/* ---- versions ---- */

/* The lists are chains of relative offsets: forward only and inside, so they end. */
static const char *defined_version(const struct symtab *tab, uint16_t ndx)
{
	size_t at = 0;
	Elf64_Verdef def;

	while (tab->verdef.bytes && at + sizeof(def) <= tab->verdef.size) {
		memcpy(&def, tab->verdef.bytes + at, sizeof(def));
		if ((def.vd_ndx & 0x7fff) == ndx && def.vd_aux <= tab->verdef.size &&
		    at + def.vd_aux + sizeof(Elf64_Verdaux) <= tab->verdef.size)
			return view_string(tab->verstr, ld32(tab->verdef.bytes + at + def.vd_aux));
		if (!def.vd_next || def.vd_next > tab->verdef.size)
			break;
		at += def.vd_next;
	}
	return NULL;
}

static const char *needed_of_file(const struct symtab *tab, size_t at, unsigned int count,
				  uint16_t ndx)
{
	Elf64_Vernaux aux;

	while (count-- && at + sizeof(aux) <= tab->verneed.size) {
		memcpy(&aux, tab->verneed.bytes + at, sizeof(aux));
		if ((aux.vna_other & 0x7fff) == ndx)
			return view_string(tab->verstr, aux.vna_name);
		if (!aux.vna_next || aux.vna_next > tab->verneed.size)
			break;
		at += aux.vna_next;
	}
	return NULL;
}

static const char *needed_version(const struct symtab *tab, uint16_t ndx)
{
	size_t at = 0;
	Elf64_Verneed need;

	while (tab->verneed.bytes && at + sizeof(need) <= tab->verneed.size) {
		const char *name;

		memcpy(&need, tab->verneed.bytes + at, sizeof(need));
		if (need.vn_aux > tab->verneed.size)
			break;
		name = needed_of_file(tab, at + need.vn_aux, need.vn_cnt, ndx);
		if (name)
			return name;
		if (!need.vn_next || need.vn_next > tab->verneed.size)
			break;
		at += need.vn_next;
	}
	return NULL;
}

const char *symtab_version(const struct symtab *tab, uint32_t i, bool *hidden)
{
	uint16_t raw, ndx;
	const char *name;

	*hidden = false;
	if (!tab->versym.bytes || ((size_t)i + 1) * 2 > tab->versym.size)
		return "";
	raw = ld16(tab->versym.bytes + (size_t)i * 2);
	ndx = raw & 0x7fff;
	if (ndx <= 1)
		return "";
	*hidden = raw & 0x8000;
	name = defined_version(tab, ndx);
	if (!name)
		name = needed_version(tab, ndx);
	return name ? name : "";
}

/* ---- memory ---- */

void symtab_forget(const struct symtab *tab)
{
	if (!tab->mapped)
		return;
	view_forget(tab->syms.bytes, tab->syms.bytes + tab->syms.size);
	view_forget(tab->str.bytes, tab->str.bytes + tab->str.size);
}

/* ---- scanning ---- */

/* This many symbols are 768 KiB; the pages behind them are released. */
#define SCAN_STRIDE 32768u

void symtab_scan(const struct symtab *tab, const struct strset *set, symtab_fn *fn, void *ctx)
{
	const uint8_t *p = tab->syms.bytes;
	struct budget_run run;
	Elf64_Sym sym;

	if (set && !set->count)
		return;
	budget_begin(&run, tab->budget);
	for (uint32_t i = 0; i < tab->count; i++, p += sizeof(Elf64_Sym)) {
		if (tab->mapped && i && i % SCAN_STRIDE == 0)
			view_forget(p - SCAN_STRIDE * sizeof(Elf64_Sym), p);
		if (i % SCAN_STRIDE == 0 && budget_over_now(&run))
			break;
		if (set && !strset_has(set, ld32(p)))
			continue;
		memcpy(&sym, p, sizeof(sym));
		if (budget_over(&run) || !fn(ctx, tab, i, &sym))
			break;
	}
	budget_end(&run);
}
