/* SPDX-License-Identifier: MIT */
/* Reads the headers of an image: names, notes, flags and the places of the symbol tables. */
#include "image-priv.h"

#include <stdio.h>

#define NT_GO_BUILD_ID 4

enum { NOTES_MOST = 1 << 20, HASHED_MOST = 1 << 26, DYNAMIC_MOST = 1 << 20 };

/* ---- dynamic section ---- */

bool image_dynamic(const struct image *img, int64_t tag, uint64_t *value)
{
	const uint8_t *p = img->dynamic.bytes;

	for (size_t n = img->dynamic.size / sizeof(Elf64_Dyn); n; n--, p += sizeof(Elf64_Dyn)) {
		int64_t t = (int64_t)ld64(p);

		if (t == tag) {
			*value = ld64(p + 8);
			return true;
		}
		if (t == DT_NULL)
			break;
	}
	return false;
}

/* At most `size` bytes at vaddr; cut where the segment ends. */
static struct view_range range_at(const struct image *img, uint64_t vaddr, uint64_t size)
{
	struct view_range r;

	r.bytes = image_bytes(img, vaddr, &r.size);
	r.size = size < r.size ? (size_t)size : r.size;
	return r;
}

static struct view_range dynamic_range(const struct image *img, int64_t tag, int64_t size_tag)
{
	uint64_t at, size = UINT64_MAX;

	if (!image_dynamic(img, tag, &at) || (size_tag && !image_dynamic(img, size_tag, &size)))
		return (struct view_range){ NULL, 0 };
	return range_at(img, at, size);
}

static const char *dynamic_string(const struct image *img, int64_t tag)
{
	uint64_t off;

	if (!image_dynamic(img, tag, &off))
		return "";
	return view_string(dynamic_range(img, DT_STRTAB, DT_STRSZ), off);
}

static void read_dynamic(struct image *img)
{
	uint64_t value;

	img->soname = dynamic_string(img, DT_SONAME);
	img->textrel = image_dynamic(img, DT_TEXTREL, &value);
	if (image_dynamic(img, DT_FLAGS, &value) && (value & DF_TEXTREL))
		img->textrel = true;
}

/* ---- notes ---- */

static void take_build_id(struct image *img, const uint8_t *id, size_t len)
{
	if (img->build_id[0] || len > (sizeof(img->build_id) - 1) / 2)
		return;
	for (size_t i = 0; i < len; i++)
		snprintf(img->build_id + 2 * i, 3, "%02x", id[i]);
}

static void read_notes(struct image *img, struct view_range r, size_t align)
{
	size_t at = 0;
	Elf64_Nhdr n;

	r.size = r.size < NOTES_MOST ? r.size : NOTES_MOST;
	while (r.bytes && at <= r.size && r.size - at >= sizeof(n)) {
		const uint8_t *name = r.bytes + at + sizeof(n), *desc;
		size_t room = r.size - at - sizeof(n), name_len, desc_len;

		memcpy(&n, r.bytes + at, sizeof(n));
		name_len = ((size_t)n.n_namesz + align - 1) & ~(align - 1);
		desc_len = ((size_t)n.n_descsz + align - 1) & ~(align - 1);
		if (name_len > room || n.n_descsz > room - name_len)
			break;
		desc = name + name_len;
		if (n.n_namesz == 4 && n.n_type == NT_GNU_BUILD_ID && !memcmp(name, "GNU", 4))
			take_build_id(img, desc, n.n_descsz);
		if (n.n_namesz == 4 && n.n_type == NT_GO_BUILD_ID && !memcmp(name, "Go\0", 4))
			img->go = true;
		at += sizeof(n) + name_len + desc_len;
	}
}

/* ---- tables ---- */

static bool is_cut_off(const struct image *img, const Elf64_Shdr *sh)
{
	return sh->sh_type != SHT_NOBITS && !view_section(&img->view, sh).bytes;
}

/* Of the names of a symbol table. */
static uint64_t table_size(const struct image *img, const Elf64_Shdr *sh)
{
	Elf64_Shdr names;

	return view_shdr(&img->view, sh->sh_link, &names) && names.sh_type == SHT_STRTAB ?
		       names.sh_size :
		       0;
}

static int read_sections(struct image *img, struct sb_err *err)
{
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(&img->view, i, &sh); i++) {
		const char *name = view_section_name(&img->view, &sh);
		bool dynamic = sh.sh_type == SHT_DYNSYM;
		enum image_table which;

		if (strcmp(name, ".gopclntab") == 0 || strcmp(name, ".go.buildinfo") == 0)
			img->go = true;
		which = dynamic ? TABLE_DYNSYM : TABLE_SYMTAB;
		if ((sh.sh_type != SHT_SYMTAB && !dynamic) || img->tab[which].count)
			continue;
		if (is_cut_off(img, &sh))
			return err_set(err, SB_ENOELF, "%s: truncated: %s is not all there",
				       img->name, name);
		if (table_size(img, &sh) > BUDGET_STRINGS || sh.sh_size > BUDGET_SYMBOLS)
			return err_set(
				err, SB_ENOELF,
				"%s: its %s is larger than sbinject reads (%llu MB of names, "
				"%llu MB of symbols)",
				img->name, name, BUDGET_STRINGS >> 20, BUDGET_SYMBOLS >> 20);
		symtab_from_section(&img->tab[which], &img->view, &sh);
	}
	return 0;
}

/*
 * The dynamic section does not contain the length of the symbol table; the hash tables do: the
 * classic one has a chain entry for each symbol, in the GNU one the last chain ends there.
 */
static uint64_t count_by_gnu_hash(const struct view_range *h)
{
	uint64_t buckets = ld32(h->bytes), first = ld32(h->bytes + 4), bloom = ld32(h->bytes + 8);
	uint64_t table = 16 + bloom * 8, chains = table + buckets * 4, last = 0;

	if (chains > h->size || buckets > HASHED_MOST)
		return 0;
	for (uint64_t i = 0; i < buckets; i++)
		if (ld32(h->bytes + table + i * 4) > last)
			last = ld32(h->bytes + table + i * 4);
	if (last < first)
		return first;
	for (;; last++) {
		uint64_t at = chains + (last - first) * 4;

		if (at + 4 > h->size || last - first > HASHED_MOST)
			return 0;
		if (ld32(h->bytes + at) & 1)
			return last + 1;
	}
}

static uint64_t count_dynamic_symbols(const struct image *img)
{
	struct view_range h = dynamic_range(img, DT_HASH, 0);

	if (h.bytes && h.size >= 8)
		return ld32(h.bytes + 4);
	h = dynamic_range(img, DT_GNU_HASH, 0);
	return h.bytes && h.size >= 16 ? count_by_gnu_hash(&h) : 0;
}

/* .dynsym of a file whose section headers were removed. */
static void read_dynsym(struct image *img)
{
	struct symtab *tab = &img->tab[TABLE_DYNSYM];
	uint64_t count = count_dynamic_symbols(img);
	struct view_range syms = dynamic_range(img, DT_SYMTAB, 0);
	struct view_range str = dynamic_range(img, DT_STRTAB, DT_STRSZ);

	if (count < syms.size / sizeof(Elf64_Sym))
		syms.size = count * sizeof(Elf64_Sym);
	if (!symtab_init(tab, syms, str))
		return;
	tab->dynamic = true;
	tab->versym = dynamic_range(img, DT_VERSYM, 0);
	tab->verdef = dynamic_range(img, DT_VERDEF, 0);
	tab->verneed = dynamic_range(img, DT_VERNEED, 0);
	tab->verstr = str;
}

static void read_segment(struct image *img, const Elf64_Phdr *ph)
{
	struct view_range r = view_slice(&img->view, ph->p_offset, ph->p_filesz);

	switch (ph->p_type) {
	case PT_DYNAMIC:
		img->dynamic = r;
		if (r.size > DYNAMIC_MOST)
			img->dynamic.size = DYNAMIC_MOST;
		break;
	case PT_INTERP:
		img->interp = view_string(r, 0);
		break;
	case PT_NOTE:
		read_notes(img, r, ph->p_align == 8 ? 8 : 4);
		break;
	case PT_GNU_EH_FRAME:
		ehframe_open(&img->eh, img, ph->p_vaddr, ph->p_filesz);
		break;
	default:
		break;
	}
}

int image_describe(struct image *img, struct sb_err *err)
{
	Elf64_Phdr ph;
	int ret;

	img->soname = img->interp = "";
	for (uint32_t i = 0; view_phdr(&img->view, i, &ph); i++)
		read_segment(img, &ph);
	read_dynamic(img);
	ret = read_sections(img, err);
	if (ret)
		return ret;
	if (!img->tab[TABLE_DYNSYM].count)
		read_dynsym(img);
	img->tab[TABLE_DYNSYM].mapped = img->tab[TABLE_SYMTAB].mapped = true;
	img->tab[TABLE_DYNSYM].budget = img->tab[TABLE_SYMTAB].budget = &img->budget;
	return 0;
}
