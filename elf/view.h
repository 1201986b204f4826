/* SPDX-License-Identifier: MIT */
#ifndef SB_VIEW_H
#define SB_VIEW_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "src/base/err.h"

/*
 * The bytes of an ELF file, in any storage (a mapped file, unpacked .gnu_debugdata), and its
 * headers, read with bounds checks. libelf is not used for it: its symbol access costs a call per
 * symbol, it copies what is not aligned, and damaged files have crashed it. Only the DWARF files
 * pass the bytes on to libdw.
 *
 * A view owns nothing and is valid as long as its bytes.
 */
struct view {
	const uint8_t *base;
	size_t size;
	uint16_t type;
	uint64_t entry;
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, shstrndx;
};

struct view_range {
	const uint8_t *bytes; /* NULL: none */
	size_t size;
};

/* Errors: SB_ENOELF (no ELF, not of this machine's class and kind, header tables cut off). */
int view_open(struct view *v, const void *base, size_t size, const char *name, struct sb_err *err);

/* The bytes [off, off + len) of the file; bytes NULL where not all of them exist. */
struct view_range view_slice(const struct view *v, uint64_t off, uint64_t len);

bool view_phdr(const struct view *v, uint32_t i, Elf64_Phdr *ph);
bool view_shdr(const struct view *v, uint32_t i, Elf64_Shdr *sh);

/* A section's content; bytes NULL for SHT_NOBITS and for one that exceeds the file. */
struct view_range view_section(const struct view *v, const Elf64_Shdr *sh);

/* The NUL-terminated name, or "". */
const char *view_section_name(const struct view *v, const Elf64_Shdr *sh);
bool view_find_section(const struct view *v, const char *name, Elf64_Shdr *sh);

/* The string at off of a string table; "" where it is not terminated inside. */
const char *view_string(struct view_range table, uint64_t off);

/*
 * Releases whole pages in [from, to); they are read again when touched. Only for bytes of a mapped
 * file: the content of heap memory would be lost.
 */
void view_forget(const uint8_t *from, const uint8_t *to);

/* e_machine of the running binary, so that no table of architectures is needed here. */
uint16_t view_own_machine(void);

/* Values in a file from outside may be unaligned. */
static inline uint16_t ld16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t ld32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t ld64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif
