/* SPDX-License-Identifier: MIT */
#include "view.h"
#include "budget.h"

#include <sys/mman.h>
#include <unistd.h>

/* The linker's own symbol for the header of the running binary. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

uint16_t view_own_machine(void)
{
	return __ehdr_start.e_machine;
}

struct view_range view_slice(const struct view *v, uint64_t off, uint64_t len)
{
	struct view_range r = { NULL, 0 };

	if (off <= v->size && len <= v->size - off) {
		r.bytes = v->base + off;
		r.size = len;
	}
	return r;
}

static int not_elf(struct sb_err *err, const char *name, const char *why)
{
	return err_set(err, SB_ENOELF, "%s: %s", name, why);
}

static int check_ident(const Elf64_Ehdr *h, const char *name, struct sb_err *err)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return not_elf(err, name, "not an ELF file");
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return not_elf(err, name, "a 32-bit ELF file; only 64-bit ones can be hooked");
	if (h->e_ident[EI_DATA] != __ehdr_start.e_ident[EI_DATA] ||
	    h->e_machine != view_own_machine())
		return not_elf(err, name, "an ELF file of another machine");
	return 0;
}

/* With 65280 sections or more the counts are in section 0. */
static void read_extended_counts(struct view *v)
{
	struct view_range r = view_slice(v, v->shoff, sizeof(Elf64_Shdr));
	Elf64_Shdr sh;

	if (!v->shoff || !r.bytes)
		return;
	memcpy(&sh, r.bytes, sizeof(sh));
	if (!v->shnum && sh.sh_size <= UINT32_MAX)
		v->shnum = (uint32_t)sh.sh_size;
	if (v->shstrndx == SHN_XINDEX)
		v->shstrndx = sh.sh_link;
	if (v->phnum == PN_XNUM)
		v->phnum = sh.sh_info;
}

int view_open(struct view *v, const void *base, size_t size, const char *name, struct sb_err *err)
{
	Elf64_Ehdr h;
	int ret;

	*v = (struct view){ .base = base, .size = size };
	if (size < sizeof(h))
		return not_elf(err, name, "not an ELF file (too short)");
	memcpy(&h, base, sizeof(h));
	ret = check_ident(&h, name, err);
	if (ret)
		return ret;
	v->type = h.e_type;
	v->entry = h.e_entry;
	v->phoff = h.e_phoff;
	v->shoff = h.e_shoff;
	v->phnum = h.e_phnum;
	v->shnum = h.e_shoff ? h.e_shnum : 0;
	v->shstrndx = h.e_shstrndx;
	if ((h.e_phnum && h.e_phentsize != sizeof(Elf64_Phdr)) ||
	    (v->shnum && h.e_shentsize != sizeof(Elf64_Shdr)))
		return not_elf(err, name, "damaged ELF header");
	read_extended_counts(v);
	if (v->shnum > BUDGET_SECTIONS || v->phnum > BUDGET_SECTIONS)
		return not_elf(err, name, "more than a million sections or segments");
	if (!view_slice(v, v->phoff, (uint64_t)v->phnum * sizeof(Elf64_Phdr)).bytes ||
	    !view_slice(v, v->shoff, (uint64_t)v->shnum * sizeof(Elf64_Shdr)).bytes)
		return not_elf(err, name, "truncated: its header tables are not all there");
	return 0;
}

bool view_phdr(const struct view *v, uint32_t i, Elf64_Phdr *ph)
{
	if (i >= v->phnum)
		return false;
	memcpy(ph, v->base + v->phoff + (uint64_t)i * sizeof(*ph), sizeof(*ph));
	return true;
}

bool view_shdr(const struct view *v, uint32_t i, Elf64_Shdr *sh)
{
	if (i >= v->shnum)
		return false;
	memcpy(sh, v->base + v->shoff + (uint64_t)i * sizeof(*sh), sizeof(*sh));
	return true;
}

struct view_range view_section(const struct view *v, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || sh->sh_type == SHT_NULL)
		return (struct view_range){ NULL, 0 };
	return view_slice(v, sh->sh_offset, sh->sh_size);
}

/* Names of files, sections and versions: a longer one is invalid. */
enum { STRING_MOST = 4096 };

const char *view_string(struct view_range table, uint64_t off)
{
	size_t room;

	if (!table.bytes || off >= table.size)
		return "";
	room = table.size - off < STRING_MOST ? table.size - off : STRING_MOST;
	if (!memchr(table.bytes + off, '\0', room))
		return "";
	return (const char *)table.bytes + off;
}

const char *view_section_name(const struct view *v, const Elf64_Shdr *sh)
{
	Elf64_Shdr names;

	if (!view_shdr(v, v->shstrndx, &names))
		return "";
	return view_string(view_section(v, &names), sh->sh_name);
}

bool view_find_section(const struct view *v, const char *name, Elf64_Shdr *sh)
{
	for (uint32_t i = 1; view_shdr(v, i, sh); i++)
		if (strcmp(view_section_name(v, sh), name) == 0)
			return true;
	return false;
}

void view_forget(const uint8_t *from, const uint8_t *to)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t lo = ((uintptr_t)from + mask) & ~mask, hi = (uintptr_t)to & ~mask;

	if (lo < hi)
		madvise((void *)lo, hi - lo, MADV_DONTNEED);
}
