/* SPDX-License-Identifier: MIT */
#include "ifunc.h"
#include "match.h"
#include "symbol.h"

#include <stdlib.h>

/* The relocations that put a function's address into a slot. */
static const struct reloc_kinds {
	uint16_t machine;
	uint32_t irelative, glob_dat, jump_slot, absolute, relative;
} reloc_kinds[] = {
	{ EM_X86_64, R_X86_64_IRELATIVE, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_64,
	  R_X86_64_RELATIVE },
	{ EM_AARCH64, R_AARCH64_IRELATIVE, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT, R_AARCH64_ABS64,
	  R_AARCH64_RELATIVE },
};

/* Versions or aliases of one function that other modules may reference. */
#define NAMES_MAX 16
/* Symbol table entries of a module that refer to one of them. */
#define WANTED_MAX 16

struct alias {
	const char *name, *version;
	bool hidden;
};

struct ifunc_search {
	const struct ifunc_reader *reader;
	const struct module *def; /* the module that defines the IFUNC */
	uint64_t vaddr;		  /* of the resolver in it */
	const struct reloc_kinds *kinds;
	struct alias alias[NAMES_MAX];
	size_t alias_count;

	const struct module *in;     /* the module under examination */
	uint32_t wanted[WANTED_MAX]; /* its symbols that refer to the IFUNC */
	size_t wanted_count;
	uint64_t found;
};

static const struct reloc_kinds *own_kinds(void)
{
	for (size_t i = 0; i < sizeof(reloc_kinds) / sizeof(reloc_kinds[0]); i++)
		if (reloc_kinds[i].machine == view_own_machine())
			return &reloc_kinds[i];
	return NULL;
}

/* ---- slots ---- */

static bool is_in_plt(const struct image *img, uint64_t vaddr)
{
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(&img->view, i, &sh); i++)
		if (vaddr >= sh.sh_addr && vaddr - sh.sh_addr < sh.sh_size &&
		    (strncmp(view_section_name(&img->view, &sh), ".plt", 4) == 0 ||
		     strcmp(view_section_name(&img->view, &sh), ".iplt") == 0))
			return true;
	return false;
}

static bool is_implementation(const struct ifunc_search *s, uint64_t value)
{
	const struct map_entry *e = maps_find(s->reader->space->maps, value);
	struct module m;
	bool plt;

	if (!e || !e->x || value == s->vaddr + s->def->bias)
		return false;
	/* A resolver may choose code that is in no file: time() is in the vDSO. */
	if (!module_at(s->reader->space, value, &m, NULL))
		return true;
	plt = is_in_plt(m.img, value - m.bias);
	image_put(m.img);
	return !plt;
}

/*
 * By name a slot may be bound to another library's function of that name (a preloaded malloc or a
 * sanitizer's memcpy); that one is no implementation of this IFUNC. Some of libc's are in the vDSO.
 */
static bool is_own_code(const struct ifunc_search *s, uint64_t value)
{
	const struct map_entry *e = maps_find(s->reader->space->maps, value);

	return image_in_text(s->def->img, value - s->def->bias) ||
	       (e && strcmp(e->path, "[vdso]") == 0);
}

static bool read_slot(const struct ifunc_search *s, uint64_t slot, uint64_t *value)
{
	const struct resolve_access *a = s->reader->access;

	return a->read(a->ctx, slot + s->in->bias, value, sizeof(*value)) >= 0;
}

static bool take_slot(struct ifunc_search *s, uint64_t slot, bool by_name)
{
	uint64_t value;

	if (!read_slot(s, slot, &value))
		return false;
	if ((by_name && !is_own_code(s, value)) || !is_implementation(s, value))
		return false;
	s->found = value;
	return true;
}

/* ---- relocations ---- */

static bool is_wanted_symbol(const struct ifunc_search *s, uint64_t index)
{
	for (size_t i = 0; i < s->wanted_count; i++)
		if (s->wanted[i] == index)
			return true;
	return false;
}

static bool take_reloc(struct ifunc_search *s, const uint8_t *p)
{
	uint64_t slot = ld64(p), info = ld64(p + 8), addend = ld64(p + 16);
	uint64_t type = ELF64_R_TYPE(info), index = ELF64_R_SYM(info);

	if (type == s->kinds->irelative)
		return s->in->img == s->def->img && s->in->bias == s->def->bias &&
		       addend == s->vaddr && take_slot(s, slot, false);
	if (!index || !is_wanted_symbol(s, index))
		return false;
	if (type == s->kinds->absolute && addend)
		return false;
	return (type == s->kinds->glob_dat || type == s->kinds->jump_slot ||
		type == s->kinds->absolute) &&
	       take_slot(s, slot, true);
}

static bool take_relocs(struct ifunc_search *s, struct view_range r, uint64_t skip)
{
	size_t count = r.bytes ? r.size / sizeof(Elf64_Rela) : 0;

	for (size_t i = skip < count ? (size_t)skip : count; i < count; i++)
		if (take_reloc(s, r.bytes + i * sizeof(Elf64_Rela)))
			return true;
	return false;
}

static struct view_range reloc_table(const struct image *img, int64_t tag, int64_t size_tag)
{
	struct view_range r = { NULL, 0 };
	uint64_t at, size;

	if (!image_dynamic(img, tag, &at) || !image_dynamic(img, size_tag, &size))
		return r;
	r.bytes = image_bytes(img, at, &r.size);
	r.size = size < r.size ? (size_t)size : r.size;
	r.size = r.size < BUDGET_SYMBOLS ? r.size : BUDGET_SYMBOLS;
	return r;
}

/* A static executable has no dynamic section; its start code relocates .rela.plt itself. */
static bool take_static_relocs(struct ifunc_search *s)
{
	const struct view *v = &s->in->img->view;
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(v, i, &sh); i++)
		if (sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC) &&
		    take_relocs(s, view_section(v, &sh), 0))
			return true;
	return false;
}

static bool take_module_relocs(struct ifunc_search *s)
{
	const struct image *img = s->in->img;
	uint64_t relative = 0;

	if (!img->dynamic.bytes)
		return take_static_relocs(s);
	/* The relative ones come first and are the bulk: 100 MB of them in some libraries. */
	image_dynamic(img, DT_RELACOUNT, &relative);
	return take_relocs(s, reloc_table(img, DT_JMPREL, DT_PLTRELSZ), 0) ||
	       take_relocs(s, reloc_table(img, DT_RELA, DT_RELASZ), relative);
}

/* ---- names ---- */

static bool take_alias(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct ifunc_search *s = ctx;
	struct alias *a = &s->alias[s->alias_count];

	if (sym->st_value != s->vaddr || sym->st_shndx == SHN_UNDEF ||
	    ELF64_ST_TYPE(sym->st_info) != STT_GNU_IFUNC)
		return true;
	a->name = symtab_name(tab, sym);
	a->version = symtab_version(tab, i, &a->hidden);
	if (s->wanted_count < WANTED_MAX)
		s->wanted[s->wanted_count++] = i;
	return ++s->alias_count < NAMES_MAX;
}

struct import_scan {
	struct ifunc_search *search;
	const struct alias *alias;
};

/* A reference without a version binds to the default one; with one, to that one. */
static bool take_import(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct import_scan *scan = ctx;
	struct ifunc_search *s = scan->search;
	bool hidden;
	const char *version;

	if (sym->st_shndx != SHN_UNDEF || strcmp(symtab_name(tab, sym), scan->alias->name) != 0)
		return true;
	version = symtab_version(tab, i, &hidden);
	if (*version ? strcmp(version, scan->alias->version) == 0 : !scan->alias->hidden)
		s->wanted[s->wanted_count++] = i;
	return s->wanted_count < WANTED_MAX;
}

static void find_imports(struct ifunc_search *s)
{
	const struct symtab *tab = image_table(s->in->img, TABLE_DYNSYM);

	s->wanted_count = 0;
	for (size_t i = 0; tab && i < s->alias_count && s->wanted_count < WANTED_MAX; i++) {
		struct import_scan scan = { s, &s->alias[i] };
		struct strset set;

		if (strset_exact(&set, tab, s->alias[i].name))
			return;
		symtab_scan(tab, &set, take_import, &scan);
		strset_free(&set);
	}
}

static bool search_others(struct ifunc_search *s)
{
	struct module_list all;
	bool found = false;

	if (!s->alias_count || module_find(s->reader->space, NULL, &all, NULL))
		return false;
	for (size_t i = 0; !found && i < all.count; i++) {
		s->in = &all.module[i];
		if (s->in->img == s->def->img && s->in->bias == s->def->bias)
			continue;
		find_imports(s);
		found = s->wanted_count && take_module_relocs(s);
	}
	s->in = s->def;
	module_list_free(&all);
	return found;
}

/* ---- calling the resolver ---- */

/* The state of its module by one relocation: 1 it has been relocated, 0 not yet, -1 unknown. */
static int tells(const struct ifunc_search *s, const uint8_t *p)
{
	uint64_t slot = ld64(p), type = ELF64_R_TYPE(ld64(p + 8)), addend = ld64(p + 16);
	const struct map_entry *e;
	uint64_t value;

	if (type != s->kinds->relative && type != s->kinds->irelative)
		return -1;
	if (!read_slot(s, slot, &value))
		return 0;
	if (type == s->kinds->relative)
		return s->in->bias ? value == addend + s->in->bias : -1;
	e = maps_find(s->reader->space->maps, value);
	return e && e->x && value != addend + s->in->bias &&
	       !(image_in_text(s->in->img, value - s->in->bias) &&
		 is_in_plt(s->in->img, value - s->in->bias));
}

static int table_tells(const struct ifunc_search *s, struct view_range r, bool last)
{
	size_t count = r.bytes ? r.size / sizeof(Elf64_Rela) : 0;
	int reply = -1;

	for (size_t i = 0; i < count && reply < 0; i++)
		reply = tells(s, r.bytes + (last ? count - 1 - i : i) * sizeof(Elf64_Rela));
	return reply;
}

static int static_tells(const struct ifunc_search *s)
{
	const struct view *v = &s->in->img->view;
	Elf64_Shdr sh;
	int reply = -1;

	for (uint32_t i = 1; view_shdr(v, i, &sh) && reply < 0; i++)
		if (sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC))
			reply = table_tells(s, view_section(v, &sh), true);
	return reply;
}

/* The first entry of the packed relative relocations is the address of a slot. */
static int relr_tells(const struct ifunc_search *s)
{
	struct view_range r = reloc_table(s->in->img, DT_RELR, DT_RELRSZ), slot;
	uint64_t value;

	if (!r.bytes || r.size < sizeof(uint64_t) || !s->in->bias)
		return -1;
	slot.bytes = image_bytes(s->in->img, ld64(r.bytes), &slot.size);
	if (!slot.bytes || slot.size < sizeof(value) || !read_slot(s, ld64(r.bytes), &value))
		return -1;
	return value == ld64(slot.bytes) + s->in->bias;
}

/*
 * Only then may the resolver be called: before, it would read slots that are still empty. The last
 * of the table is examined first, since results of resolvers are filled in last.
 */
static bool is_relocated(const struct ifunc_search *s)
{
	const struct image *img = s->in->img;
	int reply;

	if (!img->dynamic.bytes)
		return static_tells(s) != 0;
	reply = table_tells(s, reloc_table(img, DT_JMPREL, DT_PLTRELSZ), true);
	if (reply < 0)
		reply = table_tells(s, reloc_table(img, DT_RELA, DT_RELASZ), true);
	if (reply < 0)
		reply = relr_tells(s);
	return reply != 0;
}

static enum ifunc_state ask(struct ifunc_search *s, struct sb_err *err)
{
	const struct resolve_access *a = s->reader->access;

	if (!a->call || !is_relocated(s))
		return IFUNC_PENDING;
	if (a->call(a->ctx, s->vaddr + s->def->bias, &s->found, err) < 0)
		return IFUNC_UNKNOWN;
	if (is_implementation(s, s->found))
		return IFUNC_FOUND;
	err_set(err, SB_EREFUSED, "its resolver answers 0x%llx, where there is no function",
		(unsigned long long)s->found);
	return IFUNC_UNKNOWN;
}

enum ifunc_state ifunc_find(const struct ifunc_reader *r, const struct module *m, uint64_t vaddr,
			    uint64_t *addr, struct sb_err *err)
{
	struct ifunc_search s = {
		.reader = r, .def = m, .in = m, .vaddr = vaddr, .kinds = own_kinds()
	};
	const struct symtab *tab = image_table(m->img, TABLE_DYNSYM);
	enum ifunc_state state = IFUNC_FOUND;

	if (!s.kinds)
		return IFUNC_PENDING;
	if (tab)
		symtab_scan(tab, NULL, take_alias, &s);
	if (!take_module_relocs(&s) && !search_others(&s))
		state = ask(&s, err);
	*addr = s.found;
	return state;
}
