/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names to offsets: the symbol tables of a 64-bit ELF file. Whatever is read is data from outside
 * and is checked before use; tables are read in pieces, so a large one costs no memory.
 */
#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "speed_bump.h"

enum { MAX_SECTIONS = 4096, MAX_SEGMENTS = 256, PIECE = 128 };

struct elf_file {
	struct file *file;
	Elf64_Ehdr head;
	Elf64_Shdr *section;
	Elf64_Phdr *segment;
};

static int read_at(struct file *file, u64 at, void *buf, size_t len)
{
	loff_t pos = at;
	ssize_t n;

	if (at > LLONG_MAX - len)
		return -ENOEXEC;
	n = kernel_read(file, buf, len, &pos);
	if (n < 0)
		return n;
	return n == len ? 0 : -ENOEXEC;
}

static int read_table(struct file *file, u64 at, size_t n, size_t size, void **out)
{
	int ret;

	*out = kvmalloc_array(n, size, GFP_KERNEL);
	if (!*out)
		return -ENOMEM;
	ret = read_at(file, at, *out, n * size);
	if (ret) {
		kvfree(*out);
		*out = NULL;
	}
	return ret;
}

static int elf_open(struct elf_file *e, struct file *file)
{
	const Elf64_Ehdr *h = &e->head;
	int ret = read_at(file, 0, &e->head, sizeof(e->head));

	e->file = file;
	if (ret)
		return ret;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    (h->e_type != ET_EXEC && h->e_type != ET_DYN) || h->e_phentsize != sizeof(Elf64_Phdr) ||
	    !h->e_phnum || h->e_phnum > MAX_SEGMENTS)
		return -ENOEXEC;
	if (!h->e_shnum)
		return -ENOENT; /* no section holds symbols */
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum > MAX_SECTIONS)
		return -ENOEXEC;
	ret = read_table(file, h->e_phoff, h->e_phnum, sizeof(Elf64_Phdr), (void **)&e->segment);
	if (!ret)
		ret = read_table(file, h->e_shoff, h->e_shnum, sizeof(Elf64_Shdr),
				 (void **)&e->section);
	return ret;
}

static void elf_close(struct elf_file *e)
{
	kvfree(e->section);
	kvfree(e->segment);
}

/* The place in the file of the code at this virtual address. */
static int to_offset(const struct elf_file *e, u64 vaddr, loff_t *offset)
{
	for (unsigned int i = 0; i < e->head.e_phnum; i++) {
		const Elf64_Phdr *p = &e->segment[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || vaddr < p->p_vaddr ||
		    vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*offset = p->p_offset + (vaddr - p->p_vaddr);
		return 0;
	}
	return -ENOENT;
}

/* Is the name at this place of a string table the wanted one? */
static bool is_named(const struct elf_file *e, const Elf64_Shdr *strings, u32 at, const char *want)
{
	char name[SB_MAX_SYMBOL + 1];
	size_t len = strlen(want) + 1;

	if (at >= strings->sh_size || len > strings->sh_size - at || len > sizeof(name))
		return false;
	return !read_at(e->file, strings->sh_offset + at, name, len) && !memcmp(name, want, len);
}

static bool is_function(const Elf64_Sym *sym)
{
	return (sym->st_info & 0xf) == STT_FUNC && sym->st_shndx != SHN_UNDEF && sym->st_value;
}

static int search_piece(const struct elf_file *e, const Elf64_Shdr *strings, const Elf64_Sym *sym,
			size_t n, const char *want, u64 *vaddr)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_function(&sym[i]) || !is_named(e, strings, sym[i].st_name, want))
			continue;
		*vaddr = sym[i].st_value;
		return 0;
	}
	return -ENOENT;
}

static int search_table(const struct elf_file *e, const Elf64_Shdr *table, const char *want,
			u64 *vaddr)
{
	const Elf64_Shdr *strings = &e->section[table->sh_link];
	u64 left = table->sh_size / sizeof(Elf64_Sym), at = table->sh_offset;
	Elf64_Sym *piece = kmalloc_array(PIECE, sizeof(*piece), GFP_KERNEL);
	int ret = piece ? -ENOENT : -ENOMEM;

	while (left && ret == -ENOENT) {
		size_t n = min_t(u64, left, PIECE);

		ret = read_at(e->file, at, piece, n * sizeof(*piece));
		if (!ret)
			ret = search_piece(e, strings, piece, n, want, vaddr);
		at += n * sizeof(*piece);
		left -= n;
		if (fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	kfree(piece);
	return ret;
}

static int search(const struct elf_file *e, u32 type, const char *want, u64 *vaddr)
{
	for (unsigned int i = 0; i < e->head.e_shnum; i++) {
		const Elf64_Shdr *s = &e->section[i];
		int ret;

		if (s->sh_type != type)
			continue;
		if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= e->head.e_shnum)
			return -ENOEXEC;
		ret = search_table(e, s, want, vaddr);
		if (ret != -ENOENT)
			return ret;
	}
	return -ENOENT;
}

/*
 * Up to 6.18 at least the kernel mistakes a vector instruction (VEX, EVEX) for a push, a branch or
 * a no-op with the same opcode, and runs it wrongly.
 */
static int check_code(struct file *file, loff_t offset)
{
	int ret;
	u8 code[8], op;
	size_t at;

	ret = read_at(file, offset, code, sizeof(code));
	if (ret)
		return ret;
	at = code[0] == 0xc5 ? 2 : code[0] == 0xc4 ? 3 : code[0] == 0x62 ? 4 : 0;
	if (!at)
		return 0;
	op = code[at];
	if ((op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f) || op == 0x90 || op == 0xe8 ||
	    op == 0xe9 || op == 0xeb)
		return -EINVAL;
	return 0;
}

int sb_symbol_offset(struct file *file, const char *symbol, loff_t *offset)
{
	struct elf_file e = {};
	u64 vaddr;
	int ret = elf_open(&e, file);

	if (!ret)
		ret = search(&e, SHT_DYNSYM, symbol, &vaddr);
	if (ret == -ENOENT && e.section)
		ret = search(&e, SHT_SYMTAB, symbol, &vaddr);
	if (!ret)
		ret = to_offset(&e, vaddr, offset);
	if (!ret)
		ret = check_code(file, *offset);
	elf_close(&e);
	return ret;
}
