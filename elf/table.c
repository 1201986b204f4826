/* SPDX-License-Identifier: MIT */
/* The symbol tables of an image; that of a separate or packed file is loaded at its first use. */
#include "image-priv.h"

static bool table_from_debug(struct symtab *tab, const struct debugfile *d)
{
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(&d->view, i, &sh); i++)
		if (sh.sh_type == SHT_SYMTAB && symtab_from_section(tab, &d->view, &sh))
			return true;
	return false;
}

static uint64_t section_address(const struct image *img, const char *name)
{
	Elf64_Shdr sh;

	return view_find_section(&img->view, name, &sh) ? sh.sh_addr : 0;
}

struct gotab *image_gotab(struct image *img)
{
	Elf64_Shdr sh;

	if (img->gotab_tried)
		return &img->gotab;
	img->gotab_tried = true;
	if (view_find_section(&img->view, ".gopclntab", &sh) ||
	    view_find_section(&img->view, ".data.rel.ro.gopclntab", &sh))
		gotab_read(&img->gotab, view_section(&img->view, &sh),
			   section_address(img, ".text"), img->view.entry, &img->budget);
	return &img->gotab;
}

static const uint8_t *text_bytes(const void *img, uint64_t vaddr, size_t *avail)
{
	return image_bytes(img, vaddr, avail);
}

/* A stripped Go program's names. */
static bool table_from_go(struct image *img)
{
	struct symtab *tab = &img->tab[TABLE_EXTRA];

	img->debug.packed = img->go && gotab_symbols(image_gotab(img), tab, text_bytes, img);
	return img->debug.packed;
}

/* The separate file has every symbol, the packed one only the functions that .dynsym lacks. */
static void open_extra(struct image *img)
{
	struct symtab *tab = &img->tab[TABLE_EXTRA];
	Elf64_Shdr sh;

	if (debugfile_take(&img->debug, image_debug_fd(img))) {
		if (table_from_debug(tab, &img->debug)) {
			tab->mapped = true;
			return;
		}
		debugfile_close(&img->debug);
	}
	if (table_from_go(img) || !view_find_section(&img->view, ".gnu_debugdata", &sh))
		return;
	switch (debugfile_unpack(&img->debug, view_section(&img->view, &sh))) {
	case UNPACK_DONE:
		table_from_debug(tab, &img->debug);
		break;
	case UNPACK_TOO_MUCH:
		img->flaw = image_flaw_packed;
		break;
	default:
		break;
	}
}

static void load_extra(struct image *img)
{
	struct budget_run run;

	img->extra_tried = true;
	if (img->tab[TABLE_SYMTAB].count)
		return;
	budget_begin(&run, &img->budget);
	open_extra(img);
	img->tab[TABLE_EXTRA].budget = &img->budget;
	budget_end(&run);
}

const struct symtab *image_table(struct image *img, enum image_table which)
{
	if (which == TABLE_EXTRA && !img->extra_tried)
		load_extra(img);
	return img->tab[which].count ? &img->tab[which] : NULL;
}

bool image_is_function(const struct image *img, const Elf64_Sym *sym, bool labels)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && !(labels && type == STT_NOTYPE))
		return false;
	return image_in_text(img, sym->st_value);
}
